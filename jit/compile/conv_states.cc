#include "jit/compile/conv_states.h"

#include <algorithm>
#include <bit>

#include "jit/compile/channel_text.h"
#include "jit/compile/conv_demands.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// A thread has all states of its channel in registers.
constexpr int64_t kMostStates = 8;
// What the L2 carries to a multiprocessor in a cycle (conv_group_cost.cc), and
// what a merge takes: a quotient and a chain of four multiply-adds.
constexpr int64_t kBytesPerCycle = 23;
constexpr int64_t kMergeCycles = 100;
// The kernel that merges, and the gap before it: 4 us on an H100.
constexpr int64_t kLaunchCycles = 7000;
constexpr int64_t kSplits = 1;  // of each group, from correlations

class Deciding {
 public:
  Deciding(const Schedule& schedule, const Kernel& kernel, const Target& target)
      : schedule_(schedule), kernel_(kernel), sm_count_(target.sm_count) {}

  // Whether to merge so many states of each group where they are used.
  bool Run(int64_t states) const {
    if (!kernel_.group.finish.empty()) return false;
    const Node& tail = NodeAt(kernel_.group.tail);
    if (tail.op != OpKind::kGroupNorm) return false;
    if (schedule_.lowered.AnyIsOutput(tail.results)) return false;
    if (states > kMostStates) return false;
    int64_t cycles = 0;
    for (const Kernel& reader : schedule_.kernels) {
      const std::vector<int> nodes = NodesThatRead(reader, tail);
      if (nodes.empty()) continue;
      if (!CanMerge(reader, nodes)) return false;
      cycles += CyclesOfMerging(reader, states, ReducerStateBytes(tail));
    }
    return cycles < kLaunchCycles;
  }

 private:
  const Node& NodeAt(int index) const { return schedule_.lowered.nodes[index]; }

  static bool Has(const std::vector<int>& list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  std::vector<int> NodesThatRead(const Kernel& reader, const Node& tail) const {
    std::vector<int> nodes;
    if (!reader.computes()) return nodes;
    for (const int node : reader.group.Nodes()) {
      const std::vector<Operand>& operands = NodeAt(node).operands;
      if (std::any_of(operands.begin(), operands.end(),
                      [&](const Operand& operand) {
                        return Has(tail.results, ValueOf(operand));
                      })) {
        nodes.push_back(node);
      }
    }
    return nodes;
  }

  // Whether `nodes` are norms of the convolution's elements, and there is room
  // for what channels have in common.
  bool CanMerge(const Kernel& reader, const std::vector<int>& nodes) const {
    if (!reader.conv || !reader.conv->has_groups()) return false;
    const std::vector<int>& inner = reader.group.epilogue;
    return MostFields(reader) * kFieldBytes <= kMaxChannelBytes &&
           std::all_of(nodes.begin(), nodes.end(), [&](int node) {
             return NodeAt(node).op == OpKind::kGroupNorm && Has(inner, node);
           });
  }

  // A bias, a sign for windows, and what the ops between have.
  int64_t MostFields(const Kernel& reader) const {
    return (reader.group.early_pooling < 0 ? 1 : 2) +
           ChannelFieldsOf(schedule_.lowered, reader.group.epilogue,
                           reader.group.domain);
  }

  // On each multiprocessor: what threads read for their channels, and states
  // merged in pairs.
  int64_t CyclesOfMerging(const Kernel& reader, int64_t states,
                          int64_t bytes) const {
    const int64_t read = reader.conv->block_channels() * states * bytes;
    const int64_t merges = std::bit_width(static_cast<uint64_t>(states - 1));
    return CeilDiv(reader.conv->blocks(), sm_count_) *
           (CeilDiv(read, kBytesPerCycle) + merges * kMergeCycles);
  }

  const Schedule& schedule_;
  const Kernel& kernel_;
  const int64_t sm_count_;
};

}  // namespace

bool MergesWhereUsed(const Schedule& schedule, const Kernel& kernel,
                     const Target& target) {
  return Deciding(schedule, kernel, target).Run(SplitsOf(schedule, kernel));
}

std::optional<Correlation> CorrelationFor(const Schedule& schedule,
                                          const Kernel& kernel, Grade grade,
                                          const Target& target) {
  std::optional<Correlation> correlation =
      ChooseCorrelation(kernel.conv->problem, kernel.demands, grade, target);
  if (correlation && !Deciding(schedule, kernel, target).Run(kSplits)) {
    correlation.reset();
  }
  return correlation;
}

const Kernel* KernelThatLeaves(const Schedule& schedule, int value) {
  const int producer = schedule.lowered.values[value].producer;
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.leaves_states && kernel.group.tail == producer) return &kernel;
  }
  return nullptr;
}

int64_t SplitsOf(const Schedule& schedule, const Kernel& kernel) {
  if (kernel.correlation) return kSplits;
  const Node& tail = schedule.lowered.nodes[kernel.group.tail];
  return kernel.conv->Splits(ChannelsOfState(tail, kernel.group.domain));
}

int64_t BytesOfStates(const Schedule& schedule, const Kernel& kernel) {
  const Node& tail = schedule.lowered.nodes[kernel.group.tail];
  const TensorDesc& statistics = schedule.lowered.values[tail.results[0]].desc;
  return NumElements(statistics.dims) * SplitsOf(schedule, kernel) *
         ReducerStateBytes(tail);
}

int64_t BytesOfPartials(const Schedule& schedule, const Kernel& kernel) {
  const int64_t states = BytesOfStates(schedule, kernel);
  if (!kernel.correlation) return states;
  return PlaceOfCorrelations(schedule, kernel).offset_bytes -
         kernel.partials->offset_bytes +
         CorrelationBytes(kernel.conv->problem, *kernel.correlation);
}

Place PlaceOfCorrelations(const Schedule& schedule, const Kernel& kernel) {
  constexpr int64_t kAlignment = 16;  // of an access
  Place place = *kernel.partials;
  place.offset_bytes += RoundUp(BytesOfStates(schedule, kernel), kAlignment);
  return place;
}

}  // namespace kiln
