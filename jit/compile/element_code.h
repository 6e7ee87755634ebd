#ifndef KILN_JIT_COMPILE_ELEMENT_CODE_H_
#define KILN_JIT_COMPILE_ELEMENT_CODE_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "jit/compile/folded_factors.h"
#include "jit/compile/kernel_tensors.h"
#include "jit/compile/schedule.h"

namespace kiln {

// Writes the straight-line code of one element: loads, one line for each
// pointwise node without what its operands' ranges make dead, stores. `t` is a
// Spec::Tensors and `at` a kiln::Point over `domain`. Client text never reaches
// the code: names are ours, numbers are checked integers, floats are
// hexadecimal literals.
class ElementCode {
 public:
  ElementCode(const Schedule& schedule, const Dims& domain,
              KernelTensors* tensors);

  // Says that `value` is already computed, under its own name.
  void Define(int value);
  std::string NameOf(int value) const;

  // Says that `value` is `text` wherever the code reads it.
  void DefineAs(int value, std::string text);

  // Says that `text` is the kiln::Divisor of `value`.
  void DefineDivisor(int value, std::string text);

  // From here on, what depends on the image and the channel alone is computed
  // apart, and read from the fields of a `channel`.
  void SeparateChannels() { separates_ = true; }
  // From here on, what is read of tensors at the element's own place is read
  // apart, and is a field of `beside`.
  void SeparateElements() { separates_elements_ = true; }
  // From here on, what is read of tensors at the element's own place is read so
  // that caches give it up first.
  void StreamElements() { streams_elements_ = true; }
  struct ReadBeside {
    std::string name, tensor, type;
  };
  const std::vector<ReadBeside>& read_beside() const { return read_beside_; }

  const std::vector<std::string>& channel_lines() const {
    return channel_lines_;
  }
  std::vector<std::string> ChannelFields() const;
  // The name of `value`, the same for a whole channel, where those are
  // computed.
  std::string ChannelLocal(int value);
  // Adds a field, computed of such names.
  void KeepInChannel(const std::string& name, const std::string& expression);

  // From here on, locals of these values hold them times their factors, under
  // names that say so.
  void Fold(FoldedFactors folded) { folded_ = std::move(folded); }

  // Adds a line as it is.
  void Line(std::string line);

  // Adds the definition of a local variable.
  void Assign(const std::string& name, const std::string& expression);

  // Adds the line that computes `node`, and before it the loads it needs.
  void Compute(const Node& node);

  // The local variable that holds `value`, loaded on first use.
  std::string Local(int value);

  // `value` times `factor`.
  std::string LocalTimes(int value, float factor);

  // The expression that reads `value` at `index`, from a field named `name`.
  std::string LoadAs(int value, const std::string& name,
                     const std::string& index);

  // The local variable `name` that holds `value` at `index`, loaded, times
  // `factor`.
  std::string LoadLocal(int value, const std::string& name,
                        const std::string& index, float factor = 1.0f);

  void StoreTo(const Store& store);
  // Only where `condition`, an expression, holds.
  void StoreTo(const Store& store, const std::string& condition);
  // The same, so that caches give it up first (store_pairs.cuh).
  void StreamTo(const Store& store, const std::string& condition);

  const std::vector<std::string>& lines() const { return lines_; }

  // The index at which each tensor is read or written, by the tensor's name;
  // empty where there are several.
  const std::map<std::string, std::string>& accesses() const {
    return accesses_;
  }

 private:
  void Note(const std::string& tensor, const std::string& index);
  std::string LocalAt(int value, const std::string& index);
  std::string OperandText(const Operand& operand);
  std::string_view CoordinateOf(const Node& node, size_t axis) const;
  std::string ChannelVector(const Operand& operand, const Node& node,
                            const char* otherwise);
  std::string GroupValue(int value, const Node& node);
  void MergeStates(const Kernel& kernel, const Node& node,
                   const std::string& index);
  std::string Expression(const Node& node);
  std::string FoldedExpression(const Node& node);
  std::string FoldedSum(const Node& node, float factor);
  std::string NormalizeCall(const Node& node);
  std::string BatchNormCall(const Node& node);
  std::string Normalized(const Node& node, const std::string& x,
                         const std::string& mean, const std::string& rstd,
                         const std::string& weight, const std::string& bias);
  void AssignTo(const std::string& name, const std::string& expression,
                std::vector<std::string>* lines);
  std::string AssignChannel(const std::string& name,
                            const std::string& expression);

  const Schedule& schedule_;
  const Dims4 domain_;
  KernelTensors* const tensors_;
  bool separates_ = false;
  bool separates_elements_ = false;
  bool streams_elements_ = false;
  std::vector<ReadBeside> read_beside_;
  FoldedFactors folded_;
  std::vector<std::string> lines_;
  std::vector<std::string> channel_lines_;
  std::vector<std::string> channel_names_;
  std::set<std::string> kept_;  // of them, whether read or not
  std::map<std::string, std::string> accesses_;
  std::map<std::pair<int, std::string>, std::string> locals_;
  std::map<int, std::string> everywhere_;
  std::map<int, std::string> divisors_;
};

// "0x1.4p+3f": exactly `value`, whatever the locale; infinities and NaN by
// their bits.
std::string FloatLiteral(float value);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ELEMENT_CODE_H_
