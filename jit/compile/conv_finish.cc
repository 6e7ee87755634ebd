#include "jit/compile/conv_finish.h"

#include <algorithm>
#include <set>
#include <utility>

#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_demands.h"
#include "jit/compile/conv_search.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// With fewer waves the last images, which are finished when nothing else is
// left to do, are most of them.
constexpr int64_t kFewestWaves = 4;
// The share of a convolution's predicted time in which all that both move may
// pass: P4 gains 13 % in fp32, with 0.67, and nothing in tf32, with 1.21
// (docs/kernel-notes).
constexpr double kShareOfMemory = 0.8;
// What a convolution takes longer beside which others are finished: 4.52 to
// 3.75 ms of P4 in fp32.
constexpr double kSlowedByOverlap = 1.2;
// What a convolution of scaled operands and a kernel behind it take longer than
// models say, beside blocks that hold images: in the mean of 44 plans.
constexpr double kApartUnderestimated = 1.2;
// The same beside blocks that hold windows: by hand, from four plans in both
// grades on an H200.
constexpr double kApartUnderestimatedOfWindows = 1.1;
// What two kernels that both compute the convolution take of what models say,
// in f32 and in 16 bits: from twelve plans and grades; and in f32 that is
// copied ahead, whose model is of an H200's times: by hand, from two plans.
constexpr double kAgainOverestimated = 0.85;
constexpr double kCopiedAgainOverestimated = 0.93;
constexpr double kHalfAgainOverestimated = 0.65;
// The same in f32 with more ops: so that the faster are chosen of 13 chains of
// three plans.
constexpr double kLongAgainUnderestimated = 1.1;

class Finishing {
 public:
  Finishing(const LoweredPlan& plan, const ConvOptions& options, bool holds,
            ConvFusion* fusion)
      : plan_(plan),
        options_(options),
        target_(options.target),
        holds_(holds),
        fusion_(*fusion) {}

  void Run() {
    for (size_t i = 0; i < fusion_.groups.size(); ++i) {
      Take(static_cast<int>(i));
    }
    std::erase_if(fusion_.groups,
                  [](const KernelGroup& group) { return group.IsEmpty(); });
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }
  const TensorDesc& DescOf(int value) const { return plan_.values[value].desc; }

  void Take(int conv) {
    KernelGroup& group = fusion_.groups[conv];
    if (group.tail < 0) return;
    const Node& tail = NodeAt(group.tail);
    const auto geometry = fusion_.geometry.find({group.anchor, group.tail});
    if (tail.op != OpKind::kGroupNorm || geometry == fusion_.geometry.end()) {
      return;
    }
    const int user = OnlyUserOf({tail.results.begin(), tail.results.end()});
    if (user < 0 || IsReducedAfter(user)) return;
    if (ComputesAgain(conv, user)) {
      TakeFromAgain(conv, user);
      return;
    }
    if (!CanFollow(conv, user, fusion_.groups[user])) return;
    const KernelGroup& rest = fusion_.groups[user];
    const bool overlaps = group.early_pooling < 0 && Suits(geometry->second) &&
                          LeavesMemory(group, geometry->second, rest);
    const double alone = CyclesOf(group);
    const double apart = overlaps ? alone * kSlowedByOverlap
                                  : alone + CyclesOf(rest, DomainOf(group));
    const bool is_held =
        holds_ && Hold(group, rest,
                       apart * ApartUnderestimated(geometry->second.problem,
                                                   group.early_pooling >= 0));
    if (!is_held && !overlaps) return;
    group.finish = std::move(fusion_.groups[user].epilogue);
    fusion_.groups[user] = {};
  }

  static double ApartUnderestimated(const ConvProblem& problem,
                                    bool has_windows) {
    if (problem.takes_as_stored()) return 1.0;
    return has_windows ? kApartUnderestimatedOfWindows : kApartUnderestimated;
  }

  // Whether `user` is the convolution once more, with nothing but pointwise
  // nodes behind it.
  bool ComputesAgain(int conv, int user) const {
    const KernelGroup& group = fusion_.groups[user];
    return group.anchor == fusion_.groups[conv].anchor && group.tail < 0 &&
           fusion_.groups[conv].early_pooling < 0;
  }

  static bool BeginsWith(const std::vector<int>& nodes,
                         const std::vector<int>& first) {
    return nodes.size() >= first.size() &&
           std::equal(first.begin(), first.end(), nodes.begin());
  }

  // Blocks that hold images need not compute them again.
  void TakeFromAgain(int conv, int user) {
    KernelGroup& group = fusion_.groups[conv];
    const KernelGroup& again = fusion_.groups[user];
    const size_t shared = group.epilogue.size();
    if (!holds_ || !BeginsWith(again.epilogue, group.epilogue)) return;
    KernelGroup rest;
    rest.domain = again.domain;
    rest.epilogue = {again.epilogue.begin() + shared, again.epilogue.end()};
    if (!CanFollow(conv, user, rest)) return;
    const ConvGeometry& geometry =
        fusion_.geometry.at({group.anchor, group.tail});
    const double apart = CyclesOf(group) + kCyclesOfLaunch + CyclesOf(again);
    if (!Hold(group, rest, apart * ShareOfAgain(geometry, again))) return;
    group.finish = std::move(rest.epilogue);
    fusion_.geometry.erase({again.anchor, again.tail});
    fusion_.demands.erase({again.anchor, again.tail});
    fusion_.groups[user] = {};
  }

  // What both kernels take of what models say.
  double ShareOfAgain(const ConvGeometry& first,
                      const KernelGroup& again) const {
    if (first.problem.input_type != DataType::kF32) {
      return kHalfAgainOverestimated;
    }
    if (first.batches_ahead > 0) return kCopiedAgainOverestimated;
    const ConvDemands& demands = fusion_.demands.at({again.anchor, again.tail});
    return demands.instructions > kFewInstructionsOfOps
               ? kLongAgainUnderestimated
               : kAgainOverestimated;
  }

  // Gives `conv` a geometry whose blocks hold images and go on with `rest`, if
  // that is faster than both in the cycles `apart`.
  bool Hold(const KernelGroup& conv, const KernelGroup& rest, double apart) {
    const std::pair<int, int> key = {conv.anchor, conv.tail};
    ConvGeometry& geometry = fusion_.geometry.at(key);
    ConvDemands& demands = fusion_.demands.at(key);
    const auto held_demands = HeldDemandsOf(plan_, conv, rest, demands);
    if (!held_demands) return false;
    const auto held =
        ChooseConvGeometryOfRank(ConvProblemOf(plan_, plan_.nodes[conv.anchor]),
                                 *held_demands, options_, 0);
    if (!held) return false;
    if (HeldCycles(*held, *held_demands) >= apart) return false;
    geometry = *held;
    demands = *held_demands;
    return true;
  }

  // Of a convolution's kernel.
  double CyclesOf(const KernelGroup& conv) const {
    const std::pair<int, int> key = {conv.anchor, conv.tail};
    const ConvGeometry& geometry = fusion_.geometry.at(key);
    return ConvCycles(geometry, fusion_.demands.at(key), target_);
  }

  // Of a pointwise kernel of its own.
  double CyclesOf(const KernelGroup& group, const Dims& dims) const {
    const auto bytes = static_cast<double>(BytesOf(group, dims));
    return kCyclesOfLaunch + bytes / (kMovedBytesPerCycle * target_.sm_count);
  }

  // Whether blocks are many, and producers have warps to spare.
  bool Suits(const ConvGeometry& g) const {
    return g.has_groups() && g.images == 1 && g.producers > 1 &&
           g.chunk_producers() == 1 &&
           g.problem.output[2] * g.problem.output[3] % kFinishVector == 0 &&
           Rounds(g, kFinishWarps) == Rounds(g, 0) &&
           g.blocks() >= kFewestWaves * target_.sm_count * g.resident_blocks;
  }

  // Of the loads of a chunk, by producers without `warps` of them.
  static int64_t Rounds(const ConvGeometry& g, int64_t warps) {
    const int64_t threads = g.producers * 128 - warps * 32;
    return CeilDiv(g.octets(), threads * g.octets_at_once());
  }

  // Whether a reduction reads what `user` makes, and could better take it along
  // (row_residency.h).
  bool IsReducedAfter(int user) const {
    const std::set<int> made = ValuesMade(plan_, fusion_.groups[user].epilogue);
    return std::any_of(fusion_.groups.begin(), fusion_.groups.end(),
                       [&](const KernelGroup& group) {
                         return group.anchor >= 0 &&
                                NodeAt(group.anchor).kind ==
                                    NodeKind::kReduce &&
                                AnyReads(plan_, group.Nodes(), made);
                       });
  }

  // The group that reads any of `values`; -1 if there are others.
  int OnlyUserOf(const std::set<int>& values) const {
    int user = -1;
    for (size_t i = 0; i < fusion_.groups.size(); ++i) {
      if (!AnyReads(plan_, fusion_.groups[i].Nodes(), values)) continue;
      if (user >= 0) return -1;
      user = static_cast<int>(i);
    }
    return user;
  }

  // Of what follows a convolution: its own, or that of windows.
  const Dims& DomainOf(const KernelGroup& conv) const {
    if (conv.early_pooling < 0) return conv.domain;
    return DescOf(NodeAt(conv.early_pooling).results[0]).dims;
  }

  // Whether `user` is pointwise, on what follows the convolution, and reads
  // nothing that is made between them.
  bool CanFollow(int conv, int user, const KernelGroup& group) const {
    if (user <= conv || group.anchor >= 0 ||
        group.domain != DomainOf(fusion_.groups[conv])) {
      return false;
    }
    std::set<int> between;
    for (int i = conv + 1; i < user; ++i) {
      between.merge(ValuesMade(plan_, fusion_.groups[i].Nodes()));
    }
    return !AnyReads(plan_, group.Nodes(), between);
  }

  bool LeavesMemory(const KernelGroup& conv, const ConvGeometry& geometry,
                    const KernelGroup& user) const {
    const ConvDemands& demands = fusion_.demands.at({conv.anchor, conv.tail});
    const double computing = ConvCycles(geometry, demands, target_);
    const int input = ValueOf(NodeAt(conv.anchor).operands[0]);
    const auto bytes =
        static_cast<double>(SizeBytes(DescOf(input)) + BytesAround(conv, user));
    const double moving = bytes / (kMovedBytesPerCycle * target_.sm_count);
    return moving < kShareOfMemory * computing;
  }

  // What the convolution writes of its elements, and what `user` reads and
  // writes of that size.
  int64_t BytesAround(const KernelGroup& conv, const KernelGroup& user) const {
    std::vector<int> nodes = conv.epilogue;
    nodes.push_back(conv.anchor);
    int64_t bytes = BytesOf(user, conv.domain);
    for (const int node : nodes) bytes += BytesWritten(NodeAt(node).results[0]);
    return bytes;
  }

  // Of elements that a pointwise group reads and writes.
  int64_t BytesOf(const KernelGroup& group, const Dims& dims) const {
    int64_t bytes = 0;
    for (const int node : group.epilogue) {
      bytes += BytesWritten(NodeAt(node).results[0]);
    }
    for (const int value : ValuesRead(plan_, group)) {
      if (DescOf(value).dims == dims) bytes += SizeBytes(DescOf(value));
    }
    return bytes;
  }

  // As outputs, and in its type where kernels read it and no output has that.
  int64_t BytesWritten(int value) const {
    int64_t bytes = 0;
    bool is_there = false;
    for (const PlanOutput& output : plan_.outputs) {
      if (output.value.index != value) continue;
      bytes += SizeBytes({output.dtype, DescOf(value).dims});
      is_there |= output.dtype == DescOf(value).dtype;
    }
    const bool is_read =
        std::any_of(fusion_.groups.begin(), fusion_.groups.end(),
                    [&](const KernelGroup& group) {
                      return ValuesRead(plan_, group).count(value) > 0;
                    });
    return bytes + (is_read && !is_there ? SizeBytes(DescOf(value)) : 0);
  }

  const LoweredPlan& plan_;
  const ConvOptions& options_;
  const Target& target_;
  const bool holds_;
  ConvFusion& fusion_;
};

}  // namespace

void FinishConvolutions(const LoweredPlan& plan, const ConvOptions& options,
                        bool holds, ConvFusion* fusion) {
  Finishing(plan, options, holds, fusion).Run();
}

int64_t FinishLag(const ConvGeometry& geometry, const Target& target) {
  const int64_t of_image = geometry.blocks() / geometry.problem.output[0];
  const int64_t resident = int64_t{geometry.resident_blocks} * target.sm_count;
  return std::min(geometry.blocks(), of_image + resident * 3 / 2);
}

}  // namespace kiln
