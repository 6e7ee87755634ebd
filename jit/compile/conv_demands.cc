#include "jit/compile/conv_demands.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "jit/compile/channel_text.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/op_cost.h"

namespace kiln {
namespace {

class Demanding {
 public:
  Demanding(const LoweredPlan& plan, const KernelGroup& conv)
      : plan_(plan), conv_(conv), elements_(ElementsOf(plan, conv)) {}

  ConvDemands Run(const std::vector<const KernelGroup*>& joining,
                  bool stores) && {
    demands_.stores = stores || joining.empty();
    AddStores(NodeAt(conv_.anchor));
    AddOps(elements_, conv_.epilogue);
    for (const KernelGroup* const group : joining) Add(*group);
    FindWhatIsLeft(joining);
    // Statistics need all elements.
    if (demands_.has_statistics) {
      demands_.windows.CoverAll(AlignDims(conv_.domain));
    }
    return demands_;
  }

  std::optional<ConvDemands> Hold(const KernelGroup& user,
                                  const ConvDemands& demands) && {
    demands_ = demands;
    const Node& tail = NodeAt(conv_.tail);
    const int held = conv_.early_pooling < 0
                         ? ValueOf(tail.operands[0])
                         : NodeAt(conv_.early_pooling).results[0];
    // Of images of one pixel, what a channel has in common looks like elements.
    const bool has_pixels = DimsOf(held)[2] * DimsOf(held)[3] > 1;
    if (!demands_.in_registers() || !has_pixels ||
        !conv_.tail_epilogue.empty() || !AreWindowsInRegisters()) {
      return std::nullopt;
    }
    std::set<int> known = {tail.results.begin(), tail.results.end()};
    known.insert(held);
    std::vector<int> all = conv_.Nodes();
    all.insert(all.end(), user.epilogue.begin(), user.epilogue.end());
    const int last = NodeAt(user.epilogue.back()).results[0];
    if (!ReadsOf(known, user.epilogue).empty() || !LeavesOnly(last, all)) {
      return std::nullopt;
    }
    // Windows are few.
    if (conv_.early_pooling < 0) AddOps(std::move(known), user.epilogue);
    demands_.stores = false;
    demands_.holds_images = true;
    demands_.held_channel_bytes =
        ChannelBytes(ChannelFieldsOf(plan_, user.epilogue, DimsOf(held)));
    return demands_;
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  // If there are any: those of conv_run_windows.cuh.
  bool AreWindowsInRegisters() const {
    const int64_t width = demands_.windows.size[1];
    return !demands_.windows.any() ||
           (!demands_.windows.lay_out_tiles() &&
            (width == 2 || width == 4 || width == 8));
  }

  void Add(const KernelGroup& group) {
    if (group.anchor < 0) {
      AddOps(elements_, group.epilogue);
      demands_.stores = true;
      return;
    }
    AddOps(elements_, group.prologue);
    AddShares(group);
    const Node& node = NodeAt(group.anchor);
    if (node.kind == NodeKind::kPool2d) {
      demands_.windows = WindowsOf(plan_, node);
    } else if (node.op == OpKind::kGroupNorm) {
      demands_.has_statistics = true;
      demands_.group_channels = ChannelsOfState(node, conv_.domain);
    } else if (ChannelsOfState(node, conv_.domain) > 0) {
      demands_.reduces_images = true;
    } else {
      demands_.all_channels_in_a_block = true;
    }
  }

  // Nodes on the convolution's elements, behind those that make `inner`.
  void AddOps(std::set<int> inner, const std::vector<int>& nodes) {
    demands_.ops += static_cast<int64_t>(nodes.size());
    const std::vector<int> reads = ReadsOf(std::move(inner), nodes);
    demands_.reads += static_cast<int64_t>(reads.size());
    are_alike_ &= AreAlike(reads);
    for (const int value : reads) {
      const bool is_f32 = plan_.values[value].desc.dtype == DataType::kF32;
      demands_.pair_words += is_f32 ? 2 : 1;
    }
    for (const int node : nodes) {
      AddStores(NodeAt(node));
    }
    demands_.instructions += InstructionsOf(plan_, nodes);
  }

  // If nothing but ops on elements follows, or statistics.
  void FindWhatIsLeft(const std::vector<const KernelGroup*>& joining) {
    std::vector<int> nodes = conv_.Nodes();
    for (const KernelGroup* const group : joining) {
      const bool has_anchor = group->anchor >= 0;
      if (has_anchor && !demands_.has_statistics) return;
      const std::vector<int> more =
          has_anchor ? group->prologue : group->Nodes();
      nodes.insert(nodes.end(), more.begin(), more.end());
    }
    const int last = NodeAt(nodes.back()).results[0];
    if (!are_alike_ || !LeavesOnly(last, nodes)) return;
    demands_.leaves_one_value = demands_.reads == 0;
    if (demands_.has_statistics) return;
    demands_.may_read_ahead = demands_.reads > 0;
    demands_.leaves_halves = demands_.stored_type != DataType::kF32 &&
                             demands_.pair_words <= 1 &&
                             IsStoredOnce(last, nodes);
    demands_.leaves_lines = plan_.values[last].laid && demands_.leaves_halves &&
                            demands_.reads == 0;
  }
  // An output that is also read might have another type there.
  bool IsStoredOnce(int value, const std::vector<int>& nodes) const {
    const auto outputs = std::count_if(
        plan_.outputs.begin(), plan_.outputs.end(),
        [&](const PlanOutput& output) { return output.value.index == value; });
    return outputs + (IsReadOutside(plan_, nodes, value) ? 1 : 0) == 1;
  }

  // Whether every value that a kernel without `nodes`, or the caller, needs of
  // what they make is `value`.
  bool LeavesOnly(int value, const std::vector<int>& nodes) const {
    return std::all_of(nodes.begin(), nodes.end(), [&](int index) {
      const int result = NodeAt(index).results[0];
      return result == value || (!plan_.AnyIsOutput({result}) &&
                                 !IsReadOutside(plan_, nodes, result));
    });
  }

  // The type of the last result counts, which is what most kernels store.
  void AddStores(const Node& node) {
    const int value = node.results[0];
    demands_.stored_type = plan_.values[value].laid
                               ? DataType::kF16
                               : plan_.values[value].desc.dtype;
    for (const PlanOutput& output : plan_.outputs) {
      if (output.value.index != value) continue;
      demands_.stores = true;
      demands_.stored_type = output.dtype;
    }
  }

  // What the softmax itself reads is at hand.
  void AddShares(const KernelGroup& group) {
    if (group.shares.empty()) return;
    demands_.stores = true;
    demands_.has_softmax = true;
    std::set<int> inner = elements_;
    for (const int node : group.prologue) inner.insert(NodeAt(node).results[0]);
    for (const int statistic : NodeAt(group.anchor).results) {
      inner.insert(statistic);
    }
    AddOps(std::move(inner), group.shares);
  }

  // Tensors that `nodes` read besides `inner` and what they make, but for those
  // that are the same throughout an image's channel.
  std::vector<int> ReadsOf(std::set<int> inner,
                           const std::vector<int>& nodes) const {
    std::vector<int> reads;
    for (const int index : nodes) {
      const Node& node = NodeAt(index);
      // Behind its input a norm has a number for each channel, or group.
      const bool is_norm = node.IsNorm();
      const size_t count = is_norm ? 1 : node.operands.size();
      for (size_t i = 0; i < count; ++i) {
        const int value = ValueOf(node.operands[i]);
        if (value < 0 || inner.count(value) > 0) continue;
        const Dims4 dims = AlignDims(DimsOf(value));
        if (dims[2] == 1 && dims[3] == 1) continue;
        reads.push_back(value);
        inner.insert(value);
      }
      inner.insert(node.results[0]);
    }
    return reads;
  }
  // Whether they are as large as what the convolution computes.
  bool AreAlike(const std::vector<int>& values) const {
    const Dims4 all = AlignDims(conv_.domain);
    return std::all_of(values.begin(), values.end(), [&](int value) {
      return AlignDims(DimsOf(value)) == all;
    });
  }

  const LoweredPlan& plan_;
  const KernelGroup& conv_;
  const std::set<int> elements_;
  ConvDemands demands_;
  bool are_alike_ = true;  // whole tensors that ops read
};

}  // namespace

std::set<int> ElementsOf(const LoweredPlan& plan, const KernelGroup& conv) {
  std::set<int> values = {plan.nodes[conv.anchor].results[0]};
  for (const int node : conv.epilogue) {
    values.insert(plan.nodes[node].results[0]);
  }
  return values;
}

ConvDemands ConvDemandsOf(const LoweredPlan& plan, const KernelGroup& conv,
                          const std::vector<const KernelGroup*>& joining,
                          bool stores) {
  return Demanding(plan, conv).Run(joining, stores);
}

int64_t ChannelFieldsOf(const LoweredPlan& plan, const std::vector<int>& nodes,
                        const Dims& dims) {
  int64_t fields = 0;
  for (const int index : nodes) {
    const Node& node = plan.nodes[index];
    if (node.IsNorm()) {
      fields += 2;
      continue;
    }
    for (const Operand& operand : node.operands) {
      const int value = ValueOf(operand);
      if (value >= 0 && plan.values[value].desc.dims != dims) ++fields;
    }
  }
  return fields;
}

bool VariesByImage(const LoweredPlan& plan, const std::vector<int>& nodes) {
  const auto varies = [&](const Operand& operand) {
    const int value = ValueOf(operand);
    if (value < 0) return false;
    const Dims4 dims = AlignDims(plan.values[value].desc.dims);
    return dims[0] > 1 && dims[2] * dims[3] == 1;
  };
  return std::any_of(nodes.begin(), nodes.end(), [&](int index) {
    const Node& node = plan.nodes[index];
    // Its statistics are a vector of all images' groups.
    const Dims4 dims = AlignDims(plan.values[node.results[0]].desc.dims);
    if (node.op == OpKind::kGroupNorm && dims[0] > 1) return true;
    return std::any_of(node.operands.begin(), node.operands.end(), varies);
  });
}

std::optional<ConvDemands> HeldDemandsOf(const LoweredPlan& plan,
                                         const KernelGroup& conv,
                                         const KernelGroup& user,
                                         const ConvDemands& demands) {
  return Demanding(plan, conv).Hold(user, demands);
}

}  // namespace kiln
