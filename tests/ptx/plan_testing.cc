#include "tests/ptx/plan_testing.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "tests/jit/compile/compile_testing.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln::ptx {

PlanKernels Compiled(const std::string& text, const std::string& target,
                     const PlanRunOptions& options) {
  absl::StatusOr<PlanKernels> kernels =
      CompileToPtx(text, target, TestToolchain(), options);
  if (!kernels.ok()) {
    ADD_FAILURE() << text << DescribeFailure(kernels.status());
    return {};
  }
  return *std::move(kernels);
}

void ExpectAgreement(const PlanKernels& kernels, const InputOptions& inputs,
                     const std::vector<PlanRunOptions>& ways) {
  const absl::StatusOr<ReferenceRun> reference =
      RunReference(kernels.canonical, inputs);
  ASSERT_TRUE(reference.ok()) << reference.status();
  for (const PlanRunOptions& options : ways) {
    const absl::StatusOr<Comparison> result =
        CompareWithReference(kernels, *reference, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LE(result->norm_error, ToleranceOf(kernels.canonical));
    EXPECT_EQ(result->num_wrong, 0) << result->first_wrong;
    EXPECT_EQ(result->num_special > 0, inputs.has_specials);
  }
}

PlanRunOptions Interrupted() {
  PlanRunOptions options;
  options.schedule_seed = 11;
  return options;
}

PlanRunOptions OffGrid() {
  PlanRunOptions options;
  options.off_grid = 1;
  return options;
}

void ExpectAgreementWithSpecials(
    const PlanKernels& kernels, InputOptions inputs,
    const std::vector<PlanRunOptions>& ways,
    const std::vector<PlanRunOptions>& ways_of_specials) {
  inputs.has_specials = false;
  ExpectAgreement(kernels, inputs, ways);
  inputs.has_specials = true;
  ExpectAgreement(kernels, inputs, ways_of_specials);
}

const ConvGeometry* FirstConvolution(const PlanKernels& kernels) {
  for (const Kernel& kernel : kernels.schedule.kernels) {
    if (kernel.conv && kernel.computes()) return &*kernel.conv;
  }
  return nullptr;
}

void ExpectAgreementAnyway(
    const std::string& text, const std::string& target,
    const std::function<void(const ConvGeometry&)>& check) {
  const PlanKernels kernels = Compiled(text, target);
  const ConvGeometry* const geometry = FirstConvolution(kernels);
  ASSERT_NE(geometry, nullptr);
  check(*geometry);
  const std::vector<PlanRunOptions> ways = {{}, Interrupted(), OffGrid()};
  ExpectAgreementWithSpecials(kernels, {}, ways, ways);
}

void ExpectAgreementOfKind(const std::string& text, int sm_count,
                           const InputOptions& inputs,
                           const std::function<bool(const Kernel&)>& is) {
  const std::optional<Tuning> tuning =
      FindConvRank(text, {"sm_90a", sm_count}, is);
  ASSERT_TRUE(tuning.has_value());
  const PlanKernels kernels =
      Compiled(text, "sm_90a/" + std::to_string(sm_count), {.tuning = *tuning});
  ExpectAgreementWithSpecials(kernels, inputs, {{}},
                              {Interrupted(), OffGrid()});
}

}  // namespace kiln::ptx
