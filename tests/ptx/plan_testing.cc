#include "tests/ptx/plan_testing.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/jit/compile/compile_testing.h"

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

const ConvGeometry* FirstConvolution(const PlanKernels& kernels) {
  for (const Kernel& kernel : kernels.schedule.kernels) {
    if (kernel.conv && kernel.computes()) return &*kernel.conv;
  }
  return nullptr;
}

void ExpectAgreementAnyway(
    const std::string& text, const std::string& target,
    const std::function<void(const ConvGeometry&)>& check) {
  PlanRunOptions interrupted, off_grid;
  interrupted.schedule_seed = 11;
  off_grid.off_grid = 1;
  const PlanKernels kernels = Compiled(text, target);
  const ConvGeometry* const geometry = FirstConvolution(kernels);
  ASSERT_NE(geometry, nullptr);
  check(*geometry);
  for (const bool has_specials : {false, true}) {
    InputOptions inputs;
    inputs.has_specials = has_specials;
    ExpectAgreement(kernels, inputs, {{}, interrupted, off_grid});
  }
}

}  // namespace kiln::ptx
