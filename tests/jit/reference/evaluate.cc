#include "tests/jit/reference/evaluate.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "jit/plan/plan_text.h"
#include "jit/plan/reference.h"
#include "jit/plan/reference_convert.h"
#include "jit/plan/validate.h"

namespace kiln {

std::vector<Values> EvaluateAll(std::string_view plan_text,
                                const std::vector<Values>& inputs) {
  const auto plan = ParsePlanText(plan_text);
  if (!plan.ok() || plan->inputs.size() != inputs.size()) {
    ADD_FAILURE() << plan.status() << "\n" << plan_text;
    return {};
  }
  const auto descs = ValidatePlan(*plan);
  if (!descs.ok()) {
    ADD_FAILURE() << descs.status() << "\n" << plan_text;
    return {};
  }
  std::vector<std::string> stored;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorDesc& desc = plan->inputs[i].desc;
    EXPECT_EQ(static_cast<int64_t>(inputs[i].size()), NumElements(desc.dims));
    stored.emplace_back(SizeBytes(desc), '\0');
    ElementsFromDouble(desc.dtype, inputs[i].data(), inputs[i].size(),
                       stored.back().data());
  }
  std::vector<const void*> in;
  for (const std::string& bytes : stored) in.push_back(bytes.data());
  std::vector<Values> outputs;
  for (const PlanOutput& output : plan->outputs) {
    outputs.emplace_back(NumElements((*descs)[output.value.index].dims),
                         std::numeric_limits<double>::quiet_NaN());
  }
  std::vector<double*> out;
  for (Values& values : outputs) out.push_back(values.data());
  const absl::Status status = EvaluateReferenceToDouble(*plan, in, out);
  EXPECT_TRUE(status.ok()) << status << "\n" << plan_text;
  return outputs;
}

Values Evaluate(std::string_view plan_text, const std::vector<Values>& inputs) {
  std::vector<Values> outputs = EvaluateAll(plan_text, inputs);
  return outputs.size() == 1 ? outputs[0] : Values();
}

Values RandomValues(int64_t count, int seed) {
  std::mt19937 source(seed);
  std::normal_distribution<float> normal;
  Values values(count);
  for (double& value : values) value = normal(source);
  return values;
}

}  // namespace kiln
