#include "tests/jit/plan/parse_plan.h"

#include <cstdio>
#include <cstdlib>

#include "jit/plan/plan_text.h"

namespace kiln {

Plan MustParsePlan(std::string_view text) {
  absl::StatusOr<Plan> plan = ParsePlanText(text);
  if (!plan.ok()) {
    std::fprintf(stderr, "%s\n%.*s\n", plan.status().ToString().c_str(),
                 static_cast<int>(text.size()), text.data());
    std::abort();
  }
  return *std::move(plan);
}

}  // namespace kiln
