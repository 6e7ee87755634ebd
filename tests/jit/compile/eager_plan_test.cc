// The artifacts of the variant eager. Prevents kernels that spill, launches
// that read what is not there, and bytes that depend on who makes them.
#include "jit/compile/eager_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "jit/compile/compile_plan.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/shape_sets.h"

namespace kiln {
namespace {

constexpr char kChain[] = R"(input x: f32[8,16,32,32]
param w: f32[32,16,3,3]
param s: f16[32]
c = conv2d(x, w, padding=1)
n = group_norm(c, s, num_groups=4)
t = tanh(n)
y = mul(t, 2)
z = max_pool2d(y, kernel_size=2)
output z: f16
)";

CompileRequest EagerRequest(std::string_view text) {
  CompileRequest request = RequestFor(text, "sm_90a/132");
  request.variant = "eager";
  return request;
}

const Module& ModuleOfHopper() {
  static const Module& module =
      *new Module(*CompileEagerModule("sm_90a", &TestNvrtc()));
  return module;
}

TEST(EagerPlanTest, ModuleCompilesWithoutSpillsForEveryArchitecture) {
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a"}) {
    const absl::StatusOr<Module> module =
        CompileEagerModule(arch, &TestNvrtc());
    ASSERT_TRUE(module.ok()) << arch << DescribeFailure(module.status());
    for (const KernelEntry& entry : module->entries) {
      EXPECT_EQ(entry.local_bytes, 0) << arch << " " << entry.symbol;
    }
  }
}

TEST(EagerPlanTest, LaunchRecordsOfEveryPlanAreSound) {
  for (const std::string& set : ShapeSetNames()) {
    for (const NamedPlan& named : PlansOfShapeSet(set)) {
      SCOPED_TRACE(named.text);
      CheckLaunchRecord(
          MakeEagerArtifact(EagerRequest(named.text), ModuleOfHopper()));
    }
  }
}

TEST(EagerPlanTest, WhoeverMakesAnArtifactMakesTheSame) {
  const CompileRequest request = EagerRequest(kChain);
  const absl::StatusOr<Artifact> compiled = CompilePlan(request, &TestNvrtc());
  ASSERT_TRUE(compiled.ok()) << DescribeFailure(compiled.status());
  const Artifact made = MakeEagerArtifact(request, ModuleOfHopper());
  EXPECT_EQ(made.key, compiled->key);
  EXPECT_EQ(made.modules, compiled->modules);
  EXPECT_EQ(made.slots, compiled->slots);
  EXPECT_EQ(made.variants, compiled->variants);
}

// Of a chain of operations on a tensor one copy is kept, where each could have
// its own.
TEST(EagerPlanTest, ResultsReplaceOperandsThatNobodyReadsAgain) {
  const Artifact artifact =
      MakeEagerArtifact(EagerRequest(kChain), ModuleOfHopper());
  constexpr int64_t kTensorBytes = int64_t{4} * 8 * 32 * 32 * 32;
  constexpr int64_t kPooledBytes = kTensorBytes / 4;
  const Variant& variant = artifact.variants.front();
  EXPECT_GE(variant.workspace_bytes, kTensorBytes + kPooledBytes);
  EXPECT_LT(variant.workspace_bytes, kTensorBytes + 2 * kPooledBytes);
}

TEST(EagerPlanTest, ModuleRequestIsItsOwnPlan) {
  const CompileRequest request = EagerModuleRequest({"sm_80", 108}, "nvrtc");
  EXPECT_EQ(request.variant, "eager");
  EXPECT_EQ(KeyText(request),
            KeyText(EagerModuleRequest({"sm_80", 108}, "nvrtc")));
  const Artifact artifact = MakeEagerArtifact(request, Module());
  ASSERT_EQ(artifact.variants.size(), 1u);
  EXPECT_EQ(artifact.variants.front().launch.size(), 1u);
  EXPECT_EQ(artifact.variants.front().workspace_bytes, 0);
}

}  // namespace
}  // namespace kiln
