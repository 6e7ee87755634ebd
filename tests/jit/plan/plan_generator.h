#ifndef KILN_TESTS_JIT_PLAN_PLAN_GENERATOR_H_
#define KILN_TESTS_JIT_PLAN_PLAN_GENERATOR_H_

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "jit/plan/op_table.h"
#include "jit/plan/plan.h"

namespace kiln {

// The random numbers of a test. Same seed, same sequence, on any platform.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : engine_(seed) {}

  uint64_t Bits() { return engine_(); }
  // In [min, max], both included.
  int64_t Int(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(engine_() %
                                      static_cast<uint64_t>(max - min + 1));
  }
  bool OneIn(int count) { return Int(1, count) == 1; }
  template <typename T>
  T Pick(std::initializer_list<T> choices) {
    return *(choices.begin() +
             Int(0, static_cast<int64_t>(choices.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

struct PlanGeneratorOptions {
  int max_ops = 10;
  int64_t max_elements = 2048;  // of every value
  // Infinities, zeros of either sign and denormals among constants and float
  // attributes. NaN never: it would make equal plans compare unequal.
  bool extreme_floats = false;
};

// Makes valid plans over the whole op set, every kind equally likely, every
// attribute and data type used. Equal seeds make equal plans.
class PlanGenerator {
 public:
  explicit PlanGenerator(uint64_t seed, PlanGeneratorOptions options = {})
      : random_(seed), options_(options) {}

  // A plan with at least one op, some values that no output needs, and one to
  // four outputs.
  Plan Next();

 private:
  // A value that stays the same one when inputs are added.
  struct Source {
    bool is_input;
    int index;
  };

  Source AddInput(TensorDesc desc, InputRole role);
  Source NewActivation(int min_rank, int max_rank);
  Source AnySource(int min_rank, int max_rank);
  Source Vector(int64_t size, DataType dtype);
  const TensorDesc& DescOf(Source source) const;
  ValueId IdOf(Source source) const;

  bool TryAddOp(const OpInfo& info);
  std::vector<Operand> ConvOperands(bool transposed, ConvAttributes* conv);
  std::vector<Operand> GroupNormOperands(GroupNormAttributes* norm);
  std::vector<Operand> BatchNormOperands(BatchNormAttributes* norm);
  std::vector<Operand> UnaryOperands(const OpInfo& info,
                                     Attributes* attributes);
  std::vector<Operand> BinaryOperands();
  Source BroadcastPartner(const TensorDesc& desc);
  std::vector<Operand> IdsOf(const std::vector<Source>& sources, size_t count);

  DataType AnyType();
  float AnyFloat();
  Pair AnyPair(int64_t min, int64_t max);
  int64_t AnyDivisor(int64_t number);
  std::string AnyName();
  void FillUnary(const TensorDesc& input, const OpInfo& info, Attributes* out);
  void AddOutputs();

  TestRandom random_;
  PlanGeneratorOptions options_;
  Plan plan_;
  std::vector<TensorDesc> input_descs_;
  std::vector<TensorDesc> op_descs_;
};

}  // namespace kiln

#endif  // KILN_TESTS_JIT_PLAN_PLAN_GENERATOR_H_
