// Results of 16 bits that are rounded in registers (conv_rounded.cuh), and
// lines that are copied in halves (conv_lines.cuh). Prevents rows of other
// channels, residuals of other pixels or of the tile before, and accesses of
// more bytes than are aligned.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct RoundedPlan {
  std::string name;
  std::string text;
  bool takes_lines;
  bool reads_beside;
};

// The last two have tiles one below the other, each with a residual, and
// several images, each with factors of its own.
std::vector<RoundedPlan> RoundedPlans() {
  const std::string residual = "y = add(c, r)";
  const auto with = [](const std::string& r, const std::string& plan) {
    return "input r: " + r + "\n" + plan;
  };
  return {
      {"halves_of_lines",
       Conv("3,136,14,14", "200,136,1,1", "", "y = relu(c)", "f16"), true,
       false},
      {"residual_of_14",
       with("f16[3,200,14,14]",
            Conv("3,136,14,14", "200,136,1,1", "", residual, "f16")),
       true, true},
      {"pairs", Conv("2,64,44,44", "120,64,3,3", "", "y = relu(c)", "bf16"),
       false, false},
      {"columns_of_two",
       Conv("2,64,70,70", "64,64,3,3", "padding=1",
            "m = mul(c, 0.1)\ny = gelu(m)", "f16"),
       false, false},
      {"groups",
       Conv("2,128,40,40", "176,64,3,3", "groups=2, padding=1", "y = relu(c)",
            "f16"),
       false, false},
      {"rows_of_phases",
       Conv("1,64,48,48", "128,64,3,3", "padding=4, dilation=4", "y = relu(c)",
            "f16"),
       false, false},
      {"stride",
       Conv("2,64,64,64", "128,64,3,3", "stride=2, padding=1", "y = relu(c)",
            "bf16"),
       false, false},
      {"own_input",
       Conv("2,64,40,40", "64,64,3,3", "padding=1", "y = add(c, x)", "f16"),
       false, true},
      {"other_type",
       with("bf16[2,128,28,28]", Conv("2,64,28,28", "128,64,1,1", "",
                                      "a = add(c, r)\ny = cast(a, "
                                      "dtype=f16)",
                                      "f16")),
       true, true},
      {"residual_of_tiles",
       with("bf16[1,96,64,64]", Conv("1,64,64,64", "96,64,3,3", "padding=1",
                                     "m = mul(c, r)\ny = silu(m)", "bf16")),
       false, true},
      {"images",
       with("f16[19,64,14,14]\ninput s: f16[19,64,1,1]",
            Conv("19,72,14,14", "64,72,1,1", "", "m = mul(c, s)\ny = add(m, r)",
                 "f16")),
       true, true},
  };
}

TEST(PtxRoundedTest, AgreeWithTheReference) {
  for (const RoundedPlan& plan : RoundedPlans()) {
    SCOPED_TRACE(plan.name);
    ExpectAgreementAnyway(plan.text, "sm_90a/4", [&](const ConvGeometry& g) {
      EXPECT_TRUE(g.rounds_sums);
      EXPECT_EQ(g.takes_lines, plan.takes_lines);
      EXPECT_EQ(g.reads_beside, plan.reads_beside);
    });
  }
}

TEST(PtxRoundedTest, BlocksHaveSeveralTilesOrImages) {
  const std::vector<RoundedPlan> plans = RoundedPlans();
  for (size_t i = plans.size() - 2; i < plans.size(); ++i) {
    SCOPED_TRACE(plans[i].name);
    const PlanKernels kernels = Compiled(plans[i].text, "sm_90a/4");
    const ConvGeometry* const geometry = FirstConvolution(kernels);
    ASSERT_NE(geometry, nullptr);
    EXPECT_EQ(geometry->tiles_per_block > 1, i == plans.size() - 2);
    EXPECT_EQ(geometry->rounds() > 1, i == plans.size() - 1);
  }
}

}  // namespace
}  // namespace kiln::ptx
