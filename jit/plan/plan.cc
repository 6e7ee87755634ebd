#include "jit/plan/plan.h"

namespace kiln {

ValueId ResultOf(const Plan& plan, int op_index) {
  return ValueId{static_cast<int32_t>(plan.inputs.size()) + op_index};
}

std::string_view GradeName(Grade grade) {
  switch (grade) {
    case Grade::kFp32:
      return "fp32";
    case Grade::kTf32:
      return "tf32";
  }
  return "unknown";
}

std::optional<Grade> ParseGrade(std::string_view name) {
  for (Grade grade : {Grade::kFp32, Grade::kTf32}) {
    if (name == GradeName(grade)) return grade;
  }
  return std::nullopt;
}

std::string_view InputRoleName(InputRole role) {
  switch (role) {
    case InputRole::kActivation:
      return "activation";
    case InputRole::kParameter:
      return "parameter";
  }
  return "unknown";
}

}  // namespace kiln
