// Every plan compiles for every architecture without spills, and its launch
// record is sound. Prevents plans that validate but do not compile, and
// launches that read what is not there.
//
// By default a sample of each set is compiled for each architecture; the full
// matrix takes all, for five: some ten minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "jit/compile/compile_plan.h"
#include "jit/plan/plan_text.h"
#include "tests/full_matrix.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/shape_sets.h"

namespace kiln {
namespace {

constexpr size_t kSampleSize = 16;

std::vector<const char*> Targets() {
  if (!IsFullMatrix()) return {"sm_75/40", "sm_80/108", "sm_90a/132"};
  return {"sm_75/40", "sm_80/108", "sm_86/84", "sm_89/142", "sm_90a/132"};
}

// Each target takes other plans of the set, so that the sample is wide.
std::vector<NamedPlan> Sample(const std::string& set, size_t target) {
  const std::vector<NamedPlan> all = PlansOfShapeSet(set);
  if (IsFullMatrix() || all.size() <= kSampleSize) return all;
  std::vector<NamedPlan> sample;
  for (size_t i = 0; i < kSampleSize; ++i) {
    const size_t spread = i * all.size() / kSampleSize;
    sample.push_back(all[(spread + target) % all.size()]);
  }
  return sample;
}

using CompileMatrixTest = ::testing::TestWithParam<const char*>;

TEST_P(CompileMatrixTest, EverySetCompilesWithoutSpills) {
  const std::vector<const char*> targets = Targets();
  const size_t target = std::distance(
      targets.begin(),
      std::find(targets.begin(), targets.end(), std::string_view(GetParam())));
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
                         ::testing::ValuesIn(Targets()));

}  // namespace
}  // namespace kiln
