// Elements that are stored from registers (conv_run_stores.cuh). Prevents rows
// of other channels, columns of the other phase or past the end of a row, and
// accesses of more bytes than are aligned.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct StoredPlan {
  std::string name;
  std::string text;
  bool merges_phases;
};

std::vector<StoredPlan> StoredPlans() {
  const std::string norm = "n = group_norm(c, num_groups=8)\ny = relu(n)";
  return {
      {"statistics",
       Conv("2,64,32,32", "128,64,4,4", "stride=2, padding=1", norm, "f16"),
       false},
      {"statistics_of_an_output",
       Conv("2,64,32,36", "120,64,4,4", "stride=2, padding=1",
            norm + "\noutput c", "f16"),
       false},
      {"four_of_both_phases",
       Transpose("3,32,14,16", "32,128,4,4", "stride=2, padding=1",
                 "y = gelu(c)", "bf16"),
       true},
      {"two_of_both_phases",
       Transpose("2,64,9,13", "64,128,3,3",
                 "stride=2, padding=1, output_padding=1", "y = relu(c)", "f16"),
       true},
      {"statistics_of_phases",
       Transpose("2,64,14,16", "64,64,4,4", "stride=2, padding=1", norm, "f16"),
       true},
      {"f32",
       Transpose("1,64,8,24", "64,128,3,3",
                 "stride=2, padding=1, output_padding=1", "y = gelu(c)"),
       true},
  };
}

TEST(PtxRunStoresTest, AgreeWithTheReference) {
  for (const StoredPlan& plan : StoredPlans()) {
    SCOPED_TRACE(plan.name);
    ExpectAgreementAnyway(plan.text, "sm_90a/4", [&](const ConvGeometry& g) {
      EXPECT_TRUE(g.stores_sums);
      EXPECT_EQ(g.merges_phases(), plan.merges_phases);
    });
  }
}

}  // namespace
}  // namespace kiln::ptx
