#include "tests/jit/compile/elementwise_cases.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <random>

#include "fmt/format.h"
#include "jit/plan/plan_text.h"

namespace kiln {
namespace {

constexpr float kEdges[] = {
    0.0f, 1e-45f, 1e-39f, 0x1p-126f, 0.599f,   0.6f,     1.0f,  2.0f,  3.0f,
    6.0f, 20.0f,  79.9f,  88.8f,     65504.0f, 65520.0f, 1e19f, 3e38f,
};

}  // namespace

ElementwiseCase ElementwiseCaseOf(const std::string& lines,
                                  const std::vector<std::string>& outputs) {
  std::string text =
      fmt::format("input x: f32[{0},{1}]\ninput y: f32[{0},{1}]\n{2}\n",
                  kCaseElements / kCaseColumns, kCaseColumns, lines);
  for (const std::string& output : outputs) {
    text += fmt::format("output {}: f32\n", output);
  }
  ElementwiseCase result{text, *Canonicalize(*ParsePlanText(text)), {}};
  result.schedule =
      MakeSchedules(result.plan, {"sm_90a", 132}, Room::kPlain).front();
  return result;
}

Schedule WithoutRanges(Schedule schedule) {
  for (LoweredValue& value : schedule.lowered.values) {
    value.range = {};
    value.exactness = Exactness::kUlps;
  }
  return schedule;
}

std::vector<float> EdgeValues(uint32_t seed) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> values;
  for (const float x : kEdges) values.insert(values.end(), {x, -x});
  values.insert(values.end(),
                {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()});
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> near(-8.0f, 8.0f);
  while (values.size() < kCaseElements) {
    const float any = std::bit_cast<float>(static_cast<uint32_t>(random()));
    values.push_back(random() % 3 == 0 ? near(random) : any);
  }
  std::shuffle(values.begin(), values.end(), random);
  return values;
}

std::vector<std::vector<float>> OutputsOf(const HostKernels& kernels,
                                          size_t program,
                                          const CanonicalPlan& plan,
                                          std::vector<float> x,
                                          std::vector<float> y) {
  const size_t num_inputs = plan.plan.inputs.size();
  std::vector<std::vector<float>> outputs(plan.plan.outputs.size(),
                                          std::vector<float>(kCaseElements));
  std::vector<void*> slots(num_inputs);
  float* const inputs[] = {x.data(), y.data()};
  for (size_t i = 0; i < std::size(inputs); ++i) {
    const int slot = plan.slot_of_input[i];
    if (slot >= 0) slots[slot] = inputs[i];
  }
  for (std::vector<float>& output : outputs) slots.push_back(output.data());
  kernels.Run(program, slots);
  return outputs;
}

}  // namespace kiln
