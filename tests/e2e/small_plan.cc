#include "tests/e2e/small_plan.h"

#include "client/plan_builder.h"
#include "jit/plan/plan_text.h"

namespace kiln::e2e {

Plan SmallPlan(int number, int64_t elements) {
  PlanBuilder builder;
  const ValueId x = builder.Input("x", DataType::kF32, {elements});
  const float factor = static_cast<float>(number) + 0.5f;
  const ValueId product = builder.Name("m", builder.Mul(x, factor));
  builder.Output(builder.Name("y", builder.Relu(product)));
  return *builder.Build();
}

std::string SmallPlanText(int number) { return ToText(SmallPlan(number)); }

}  // namespace kiln::e2e
