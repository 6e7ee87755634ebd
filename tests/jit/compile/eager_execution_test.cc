// The kernels of eager.cu, built by the C++ compiler, against the reference.
// Prevents wrong indices, broadcasts, attributes, layouts of the workspace and
// results that replace what is still read.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "jit/compile/eager_launches.h"
#include "tests/jit/compile/host/host_cuda.h"
#include "tests/jit/compile/host/special_functions.cuh"
#include "tests/jit/compile/host/storage_types.cuh"
#include "tests/jit/compile/host_cases.h"
#include "tests/jit/compile/host_plans.h"
// Behind those that stand in for what it needs of CUDA.
#include "kernel_sources/eager.cu"

namespace kiln {
namespace {

// Few blocks: all threads of each take turns.
const Target kTarget = {"sm_90a", 1};

// Entry number `step.entry` of the module.
void LaunchOnHost(const Step& step, void* const* args) {
  const auto launch = [&](auto* kernel, bool has_barriers = false) {
    HostLaunch(kernel, args, step.grid.data(), step.block[0], has_barriers);
  };
  switch (step.entry) {
    case 0:
      return launch(kiln_eager_pointwise);
    case 1:
      return launch(kiln_eager_normalize);
    case 2:
      return launch(kiln_eager_reduce, true);
    case 3:
      return launch(kiln_eager_merge);
    case 4:
      return launch(kiln_eager_conv2d);
    default:
      return launch(kiln_eager_pool2d);
  }
}

void RunOnHost(const Variant& variant, std::span<void* const> slots) {
  // Aligned, and filled with NaNs.
  std::vector<uint64_t> workspace(variant.workspace_bytes / 8 + 1,
                                  ~uint64_t{0});
  for (const Step& step : variant.launch) {
    std::vector<uint64_t> pointers(step.args.size());
    std::vector<void*> args;
    for (size_t i = 0; i < step.args.size(); ++i) {
      const Arg& arg = step.args[i];
      if (arg.kind == ArgKind::kConstant) {
        args.push_back(const_cast<char*>(arg.bytes.data()));
        continue;
      }
      char* const base = arg.kind == ArgKind::kSlot
                             ? static_cast<char*>(slots[arg.slot])
                             : reinterpret_cast<char*>(workspace.data());
      pointers[i] = reinterpret_cast<uint64_t>(base + arg.offset_bytes);
      args.push_back(&pointers[i]);
    }
    LaunchOnHost(step, args.data());
  }
}

void CheckCases(const std::vector<HostCase>& cases, double factor,
                double max_wrong_share, const std::vector<int>& specials) {
  for (const HostCase& test : cases) {
    const Variant variant = MakeEagerLaunches(test.canonical, kTarget);
    CheckCase(test, factor, max_wrong_share, specials,
              [&](std::span<void* const> slots) { RunOnHost(variant, slots); });
  }
}

TEST(EagerExecutionTest, SmallPlansAgreeWithTheReference) {
  const std::vector<HostCase> cases = SmallCases();
  ASSERT_GT(cases.size(), 100u);
  CheckCases(cases, 1.0, 0.0, {0, 5});
}

TEST(EagerExecutionTest, LargePlansAgreeWithTheReference) {
  CheckCases(CasesOf(kLargePlans), 1.0, 0.0, {0, 5});
}

// Operands of a convolution of 16 bits have 16 bits, for whoever else reads
// them, too.
TEST(EagerExecutionTest, ComputedOperandsOfConvolutionsAreRounded) {
  constexpr const char* kPlans[] = {R"(input x: f16[2,4,5,6]
param weight: f16[6,4,3,3]
v = tanh(x)
y = conv2d(v, weight, padding=1)
z = add(v, 1)
output y: f32
output z: f32
output v: f32
)"};
  CheckCases(CasesOf(kPlans), 0.1, 0.0, {0});
}

TEST(EagerExecutionTest, RandomPlansAgreeWithTheReference) {
  constexpr uint64_t kSeed = 20261125;
  CheckCases(RandomCases(kSeed, 200), 50.0, 0.1, {0});
}

}  // namespace
}  // namespace kiln
