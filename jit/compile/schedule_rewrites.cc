#include "jit/compile/schedule_rewrites.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/call_rewrites.h"
#include "jit/compile/commute_pooling.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/folded_factors.h"
#include "jit/compile/value_ranges.h"

namespace kiln {
namespace {

bool HasEarlyPooling(const LoweredPlan& plan) {
  return std::any_of(plan.nodes.begin(), plan.nodes.end(), IsEarlyPooling);
}

class Rewrites {
 public:
  Rewrites(const CanonicalPlan& plan, const Schedule& schedule)
      : plan_(plan), schedule_(schedule) {}

  std::vector<std::string> Run() && {
    AddPoolingRewrite();
    AddSoftmaxRewrites();
    AddTotalRewrites();
    AddPatchRewrites();
    AddConvolutionRewrites();
    AddCallRewrites();
    return std::move(rewrites_);
  }

 private:
  const Node& NodeAt(int index) const { return schedule_.lowered.nodes[index]; }

  template <typename... Args>
  void AddRewrite(fmt::format_string<Args...> format, Args&&... args) {
    rewrites_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void AddPoolingRewrite() {
    const LoweredPlan& plan = schedule_.lowered;
    if (HasEarlyPooling(plan)) {
      const auto pooling =
          std::find_if(plan.nodes.begin(), plan.nodes.end(), IsEarlyPooling);
      AddRewrite(
          "pooling moved in front of the norm and the ops behind it, which "
          "then run on pooled elements only: {}",
          pooling->text);
    } else if (HasEarlyPooling(CommutePooling(Lower(plan_)))) {
      AddRewrite(
          "pooling could be moved in front of the norm, but is not: {}",
          schedule_.pools_behind
              ? "behind it, it takes less time by the models"
              : "no kernel of a convolution pools beside the statistics");
    }
  }

  // Of softmax that is split (split_softmax.h).
  void AddSoftmaxRewrites() {
    const LoweredPlan whole = Lower(plan_);
    for (const Node& node : whole.nodes) {
      if (node.kind != NodeKind::kPointwise || node.op != OpKind::kSoftmax) {
        continue;
      }
      const int quotient = QuotientOf(node.results[0]);
      if (quotient < 0) continue;
      AddRewrite("reductions and ops that it is made of{}: {}",
                 AreInRegisters(quotient)
                     ? ", between which registers hold the rows"
                     : "",
                 node.text);
    }
  }

  // Of totals that are taken row by row first (split_totals.h).
  void AddTotalRewrites() {
    const LoweredPlan whole = Lower(plan_);
    for (const Node& node : whole.nodes) {
      if (node.kind != NodeKind::kReduce) continue;
      const LoweredPlan& plan = schedule_.lowered;
      const int producer = plan.values[node.results[0]].producer;
      if (producer < 0 || plan.nodes[producer].kind != NodeKind::kReduce) {
        continue;
      }
      const int input = ValueOf(plan.nodes[producer].operands[0]);
      if (input < static_cast<int>(whole.values.size())) continue;
      AddRewrite(
          "taken row by row first, by the kernel that takes these rows "
          "through the reduction before: {}",
          node.text);
    }
  }

  // The node that divides what `result`, of softmax, was split into, or -1.
  int QuotientOf(int result) const {
    const std::vector<Node>& nodes = schedule_.lowered.nodes;
    const auto found =
        std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) {
          return node.op == OpKind::kDiv && node.results[0] == result;
        });
    return found == nodes.end() ? -1 : static_cast<int>(found - nodes.begin());
  }

  // Whether the kernel of `node` holds its rows there.
  bool AreInRegisters(int node) const {
    return std::any_of(schedule_.kernels.begin(), schedule_.kernels.end(),
                       [&](const Kernel& kernel) {
                         const std::vector<int> nodes = kernel.group.Nodes();
                         return kernel.rows && kernel.rows->is_warp_chain() &&
                                std::find(nodes.begin(), nodes.end(), node) !=
                                    nodes.end();
                       });
  }

  // What is cut or taken apart before tiles are chosen.
  void AddPatchRewrites() {
    for (const Node& node : schedule_.lowered.nodes) {
      if (node.kind != NodeKind::kUnfold) continue;
      AddRewrite(
          "patches become the channels of single pixels, for filters of their "
          "size or few channels would fill tiles badly: {}",
          node.text);
    }
    for (const Node& node : schedule_.lowered.nodes) {
      if (node.kind != NodeKind::kTurn) continue;
      const int input = ValueOf(node.operands[0]);
      if (schedule_.lowered.values[input].desc.dims[0] == 1) continue;
      AddRewrite(
          "pixels of all images become those of one, for a tile would hold one "
          "of each: {}",
          node.text);
    }
    for (const Node& node : schedule_.lowered.nodes) {
      if (node.kind != NodeKind::kJoin) continue;
      AddRewrite(
          "images lie side by side, for their rows would begin anywhere: {}",
          node.text);
    }
    for (const Node& node : schedule_.lowered.nodes) {
      if (node.columns_apart == 1) continue;
      AddRewrite(
          "a filter's {} columns are filters of their own, for products have "
          "at least eight results: {}",
          node.columns_apart, node.text);
    }
    AddMosaicRewrites();
    AddShapeRewrite();
    AddImageRewrites();
    std::set<int> named;
    for (const Kernel& kernel : schedule_.kernels) {
      if (!kernel.conv || !kernel.conv->interleaves || !kernel.computes())
        continue;
      if (!named.insert(kernel.group.anchor).second) continue;
      AddRewrite(
          "rows of the image in {} phases, in each of which the filter's rows "
          "are neighbours: {}",
          kernel.conv->interleave(), NodeAt(kernel.group.anchor).text);
    }
  }

  void AddMosaicRewrites() {
    const LoweredPlan& plan = schedule_.lowered;
    for (const Node& node : plan.nodes) {
      if (node.kind != NodeKind::kMosaic) continue;
      const Dims& apart = plan.values[ValueOf(node.operands[0])].desc.dims;
      const Dims& wide = plan.values[node.results[0]].desc.dims;
      AddRewrite(
          "{} images of {} x {} pixels side by side in {} of {} x {}, with "
          "zeros between, for a tile would hold the pixels of one: {}",
          apart[0], apart[2], apart[3], wide[0], wide[2], wide[3], node.text);
    }
  }

  // Of signals (fold_signals.h).
  void AddShapeRewrite() {
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      const Dims& from = plan_.values[i].dims;
      const Dims& to = schedule_.lowered.values[i].desc.dims;
      if (from == to || from[0] != to[0]) continue;  // or joined images
      AddRewrite(
          "signals of {} taken as images of {} x {} pixels, so that blocks "
          "have tiles one below the other",
          from[3], to[2], to[3]);
      return;
    }
  }

  // Of images with other rows (reshape_images.h).
  void AddImageRewrites() {
    for (const Node& node : schedule_.lowered.nodes) {
      if (!node.image) continue;
      const TensorDesc& from =
          schedule_.lowered.values[ValueOf(node.operands[0])].desc;
      const auto& [height, width] = *node.image;
      const std::string why =
          from.dtype == DataType::kF32
              ? "which tiles share better"
              : fmt::format("whose rows begin where an access of {} bytes may",
                            width % 8 == 0 ? 16 : 8);
      AddRewrite("images of {} x {} pixels taken as {} x {}, {}: {}",
                 from.dims[2], from.dims[3], height, width, why, node.text);
    }
  }

  // Kernels that compute each convolution, those that pack left aside.
  std::map<int, int> CountConvolutions() const {
    std::map<int, int> counts;
    for (const Kernel& kernel : schedule_.kernels) {
      if (kernel.conv && kernel.computes()) ++counts[kernel.group.anchor];
    }
    return counts;
  }

  void AddConvolutionRewrites() {
    for (const auto& [anchor, count] : CountConvolutions()) {
      const std::string& text = NodeAt(anchor).text;
      const ConvProblem problem =
          ConvProblemOf(schedule_.lowered, NodeAt(anchor));
      const int64_t products = ProductsPerElement(problem, plan_.plan.grade);
      const int64_t round_trip = ProductsPerRoundTrip(problem);
      if (count > 1) {
        AddRewrite(
            "computed again in each of {} kernels instead of stored, for {} "
            "multiply-adds an element ({} and the input once more take as long "
            "as a round trip through memory): {}",
            count, products, round_trip, text);
      } else if (IsStored(anchor) && round_trip == 0) {
        AddRewrite(
            "stored and read again, for reading the input once more takes as "
            "long as a round trip through memory, without any of {} "
            "multiply-adds an element: {}",
            products, text);
      } else if (IsStored(anchor)) {
        AddRewrite(
            "stored and read again, for {} multiply-adds an element and the "
            "input once more ({} take as long as a round trip through memory, "
            "the input included){}: {}",
            products, round_trip,
            products < round_trip
                ? "; not all kernels that read it could begin with it"
                : "",
            text);
      }
    }
  }

  // Whether the kernels of `anchor` leave a tensor of its domain's size for
  // later ones: in the workspace, or in an output that is another value's.
  bool IsStored(int anchor) const {
    for (const Kernel& kernel : schedule_.kernels) {
      if (kernel.group.anchor != anchor || !kernel.computes()) continue;
      for (const Store& store : kernel.stores) {
        const Dims& dims = schedule_.lowered.values[store.value].desc.dims;
        if (!IsOutput(store) && dims == kernel.group.domain) return true;
      }
    }
    return false;
  }

  bool IsOutput(const Store& store) const {
    const LoweredPlan& plan = schedule_.lowered;
    const int output = store.place.slot - plan.num_inputs;
    return output >= 0 && plan.outputs[output].value.index == store.value;
  }

  // Nodes that a moved pooling has copied share their text, and are named once.
  void AddCallRewrites() {
    const LoweredPlan& plan = schedule_.lowered;
    const std::set<int> folded = FoldedTanh();
    for (const Node& node : plan.nodes) {
      if (folded.count(ValueOf(node.operands[0])) > 0) {
        AddRewrite("a polynomial of what the tanh before it is made of: {}",
                   node.text);
        continue;
      }
      const std::vector<std::string> names(node.operands.size());
      const std::optional<CallRewrite> rewrite = RewriteCall(plan, node, names);
      if (!rewrite.has_value()) continue;
      const std::string text =
          fmt::format("{}{}: {}", rewrite->change, RangeText(node), node.text);
      if (std::find(rewrites_.begin(), rewrites_.end(), text) ==
          rewrites_.end()) {
        rewrites_.push_back(text);
      }
    }
  }

  // Results of tanh that are computed as part of what reads them.
  std::set<int> FoldedTanh() const {
    std::set<int> folded;
    for (const Kernel& kernel : schedule_.kernels) {
      folded.merge(FoldFactors(schedule_.lowered, kernel).skipped);
    }
    return folded;
  }

  // Of the operand that a rewrite goes by.
  std::string RangeText(const Node& node) const {
    for (const Operand& operand : node.operands) {
      const ValueRange range = RangeOf(schedule_.lowered, operand);
      if (ValueOf(operand) < 0 || IsEverything(range)) continue;
      return fmt::format(", as its operand is in {}", ToText(range));
    }
    return "";
  }

  const CanonicalPlan& plan_;
  const Schedule& schedule_;
  std::vector<std::string> rewrites_;
};

}  // namespace

std::vector<std::string> RewritesOf(const CanonicalPlan& plan,
                                    const Schedule& schedule) {
  return Rewrites(plan, schedule).Run();
}

}  // namespace kiln
