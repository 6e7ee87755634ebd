// Every plan compiles for every architecture without spills, and its launch
// record is sound. Prevents plans that validate but do not compile, and
// launches that read what is not there.
//
// By default a sample of each set is compiled for each architecture; the
// program compile_matrix_full_test takes all.
#include <gtest/gtest.h>

#include <algorithm>

#include "jit/compile/compile_plan.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/shape_sets.h"

namespace kiln {
namespace {

#ifdef KILN_FULL_MATRIX
constexpr size_t kMaxPlansPerSet = 1'000'000;
constexpr const char* kTargets[] = {"sm_75/40", "sm_80/108", "sm_86/84",
                                    "sm_89/142", "sm_90a/132"};
#else
constexpr size_t kMaxPlansPerSet = 16;
constexpr const char* kTargets[] = {"sm_75/40", "sm_80/108", "sm_90a/132"};
#endif

// Each target takes other plans of the set, so that the sample is wide.
std::vector<NamedPlan> Sample(const std::string& set, size_t target) {
  const std::vector<NamedPlan> all = PlansOfShapeSet(set);
  if (all.size() <= kMaxPlansPerSet) return all;
  std::vector<NamedPlan> sample;
  for (size_t i = 0; i < kMaxPlansPerSet; ++i) {
    const size_t spread = i * all.size() / kMaxPlansPerSet;
    sample.push_back(all[(spread + target) % all.size()]);
  }
  return sample;
}

using CompileMatrixTest = ::testing::TestWithParam<const char*>;

TEST_P(CompileMatrixTest, EverySetCompilesWithoutSpills) {
  const size_t target =
      std::find(std::begin(kTargets), std::end(kTargets), GetParam()) -
      std::begin(kTargets);
  ShapeSetCoverage coverage;
  for (const std::string& set : ShapeSetNames()) {
    for (const NamedPlan& named : Sample(set, target)) {
      SCOPED_TRACE(named.name);
      const auto artifact = CompileText(named.text, GetParam());
      ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
      CheckLaunchRecord(*artifact);
    }
    coverage.Ran(set);
  }
  EXPECT_TRUE(coverage.NeverRan().empty());
}

INSTANTIATE_TEST_SUITE_P(Targets, CompileMatrixTest,
                         ::testing::ValuesIn(kTargets));

}  // namespace
}  // namespace kiln
