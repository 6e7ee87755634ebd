#ifndef KILN_JIT_PLAN_PLAN_H_
#define KILN_JIT_PLAN_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/plan/op.h"
#include "jit/plan/tensor_desc.h"

namespace kiln {

// Of a name in a plan.
inline constexpr size_t kMaxNameBytes = 64;

// ACTIVATION changes with every call. PARAMETER stays for many calls, so work
// that depends on parameters alone may be done once ("prepared").
enum class InputRole : uint8_t { kActivation = 1, kParameter = 2 };

// An upper bound of error, not a recipe: docs/plan-language.md.
enum class Grade : uint8_t {
  kFp32 = 1,  // at most twice PyTorch's error with TF32 switched off
  kTf32 = 2,  // at most twice PyTorch's error with TF32 on
};

struct PlanInput {
  std::string name;  // only for people, not part of the key
  TensorDesc desc;
  InputRole role = InputRole::kActivation;

  friend bool operator==(const PlanInput&, const PlanInput&) = default;
};

struct PlanOutput {
  ValueId value;
  // Storage type; the value is rounded to it once, to nearest, ties to even.
  DataType dtype = DataType::kF32;

  friend bool operator==(const PlanOutput&, const PlanOutput&) = default;
};

// A fusion plan: a small graph in static single assignment form, ops in
// topological order. A value type; nothing about it is checked on
// construction: ValidatePlan does that, and every function that says so
// requires it.
struct Plan {
  std::vector<PlanInput> inputs;
  std::vector<Op> ops;
  std::vector<PlanOutput> outputs;
  Grade grade = Grade::kFp32;

  friend bool operator==(const Plan&, const Plan&) = default;
};

// The value that op number `op_index` defines.
ValueId ResultOf(const Plan& plan, int op_index);

// "fp32", "tf32": the spelling of plan text, keys and the command line.
std::string_view GradeName(Grade grade);

// Inverse of GradeName; nullopt for any other text.
std::optional<Grade> ParseGrade(std::string_view name);

// "activation", "parameter".
std::string_view InputRoleName(InputRole role);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_PLAN_H_
