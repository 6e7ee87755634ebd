#include "jit/compile/kernel_traffic.h"

#include <algorithm>
#include <set>
#include <vector>

#include "jit/compile/conv_states.h"
#include "jit/compile/split_rows.h"

namespace kiln {
namespace {

// Bytes that one kernel moves, each tensor once.
class Traffic {
 public:
  Traffic(const Schedule& schedule, const Kernel& kernel)
      : schedule_(schedule), kernel_(kernel), nodes_(kernel.group.Nodes()) {}

  int64_t Read() const {
    if (kernel_.packs() || kernel_.bounds_results()) {
      return BytesOf(WeightOf());
    }
    if (kernel_.lays()) return BytesOf(InputOf());
    if (kernel_.splits()) return BytesOf(OperandOf(kernel_.operand));
    int64_t bytes = kernel_.correlation ? BytesOf(WeightOf())
                    : kernel_.conv      ? kernel_.conv->packed_bytes()
                                        : 0;
    if (kernel_.TakesLaidLines()) bytes += kernel_.conv->laid_lines().bytes();
    bytes += BytesOfSplit(0) + BytesOfSplit(1);
    for (const int value : ValuesReadFirst()) bytes += BytesOf(value);
    for (const int value : ValuesReadAgain()) bytes += BytesOf(value);
    for (const Kernel* source : SourcesOfStates()) {
      bytes += BytesOfStates(schedule_, *source);
    }
    return bytes;
  }

  int64_t Written() const {
    if (kernel_.packs()) return kernel_.conv->packed_bytes();
    if (kernel_.lays()) {
      return kernel_.conv->laid_lines().bytes() + BytesOfScales();
    }
    if (kernel_.bounds_results()) return kBoundBytes;
    if (kernel_.splits()) return BytesOfSplit(kernel_.operand);
    if (kernel_.laid_results)
      return kernel_.conv->laid_results().elements() * 2;
    int64_t bytes =
        LeavesStates(kernel_) ? BytesOfPartials(schedule_, kernel_) : 0;
    const auto split = SplitResultOf(schedule_, kernel_);
    if (split) bytes += split->bytes();
    for (const Store& store : kernel_.stores) {
      if (store.value == kernel_.split_result) continue;
      bytes += SizeBytes({store.place.dtype, DescOf(store.value).dims});
    }
    return bytes;
  }

 private:
  // Factors and scales of laid results, which the kernel before leaves.
  int64_t BytesOfScales() const {
    constexpr int64_t kBytes = 4 + 2;
    return kernel_.laid_results ? kernel_.conv->laid_results().pixels() * kBytes
                                : 0;
  }

  // Of parts of an operand.
  int64_t BytesOfSplit(int operand) const {
    const auto rows = SplitRowsOf(schedule_, kernel_, operand);
    return rows ? rows->bytes() : 0;
  }

  const TensorDesc& DescOf(int value) const {
    return schedule_.lowered.values[value].desc;
  }

  int InputOf() const { return OperandOf(0); }
  int WeightOf() const { return OperandOf(1); }
  int OperandOf(size_t i) const {
    return ValueOf(schedule_.lowered.nodes[kernel_.group.anchor].operands[i]);
  }

  int64_t BytesOf(int value) const {
    const std::optional<Place>& home = schedule_.homes[value];
    return home ? SizeBytes({home->dtype, DescOf(value).dims}) : 0;
  }

  std::set<int> ValuesReadFirst() const {
    std::set<int> values = ValuesRead(schedule_.lowered, kernel_.group);
    // A kernel without nodes copies an input to outputs.
    if (nodes_.empty()) values.insert(kernel_.stores.front().value);
    if (kernel_.conv) EraseUnlessReadBehind(WeightOf(), &values);
    if (kernel_.TakesLaidLines()) EraseUnlessReadBehind(InputOf(), &values);
    for (const int operand : {0, 1}) {
      if (BytesOfSplit(operand) == 0) continue;
      EraseUnlessReadBehind(OperandOf(operand), &values);
    }
    return values;
  }

  // What a convolution reads in another form, unless ops behind it read it,
  // too.
  void EraseUnlessReadBehind(int value, std::set<int>* values) const {
    const bool is_read =
        std::any_of(nodes_.begin(), nodes_.end(), [&](int node) {
          return node != kernel_.group.anchor &&
                 schedule_.lowered.nodes[node].Reads(value);
        });
    if (!is_read) values->erase(value);
  }

  // For other kernels; blocks that hold images exchange theirs.
  static bool LeavesStates(const Kernel& kernel) {
    return kernel.leaves_states && !kernel.conv->holds_images();
  }

  // The kernels whose states are merged here.
  std::set<const Kernel*> SourcesOfStates() const {
    std::set<const Kernel*> sources;
    for (const int value : ValuesRead(schedule_.lowered, kernel_.group)) {
      const Kernel* const source = KernelThatLeaves(schedule_, value);
      if (source == nullptr || !LeavesStates(*source)) continue;
      sources.insert(source);
    }
    return sources;
  }

  // What is stored here and read to finish.
  std::set<int> ValuesReadAgain() const {
    std::set<int> values;
    if (kernel_.conv && kernel_.conv->holds_images()) return values;
    for (const int node : kernel_.group.finish) {
      for (const Operand& operand : schedule_.lowered.nodes[node].operands) {
        const int value = ValueOf(operand);
        if (value >= 0 && IsMadeHere(value)) values.insert(value);
      }
    }
    for (const int node : kernel_.group.finish) {
      values.erase(schedule_.lowered.nodes[node].results[0]);
    }
    return values;
  }

  bool IsMadeHere(int value) const {
    const int producer = schedule_.lowered.values[value].producer;
    return std::find(nodes_.begin(), nodes_.end(), producer) != nodes_.end();
  }

  const Schedule& schedule_;
  const Kernel& kernel_;
  const std::vector<int> nodes_;
};

}  // namespace

int64_t BytesRead(const Schedule& schedule, const Kernel& kernel) {
  return Traffic(schedule, kernel).Read();
}

int64_t BytesWritten(const Schedule& schedule, const Kernel& kernel) {
  return Traffic(schedule, kernel).Written();
}

}  // namespace kiln
