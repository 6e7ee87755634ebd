// Lines of 16-bit numbers that warps turn (conv_turned_lines.cuh): statistics,
// strides and chunks that are not full, channels as rows, a filter of one tap.
// Prevents matrices of the wrong rows, pixels in places of others, and places
// that are filled before they have been read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct TurnedPlan {
  std::string name;
  std::string text;
  bool has_channel_rows;
};

std::vector<TurnedPlan> TurnedPlans() {
  return {
      {"pixels",
       Conv("2,128,12,64", "160,128,3,3", "padding=1",
            "y = group_norm(c, num_groups=32)", "f16"),
       false},
      {"strides",
       Conv("2,72,64,64", "136,72,3,3", "stride=2, padding=1", "y = relu(c)",
            "f16"),
       true},
      {"strides_of_small_groups",
       Conv("2,32,24,40", "32,8,3,3", "stride=2, padding=1, groups=4",
            "y = relu(c)", "f16"),
       false},
      {"channels",
       Conv("2,64,48,96", "64,64,3,3", "padding=1",
            "m = mul(c, 0.1)\ny = gelu(m)", "bf16"),
       true},
      {"softmax",
       Conv("1,128,32,128", "21,128,1,1", "", "y = softmax(c, dim=1)", "f16"),
       false},
  };
}

TEST(PtxTurnedLinesTest, AgreeWithTheReference) {
  for (const TurnedPlan& plan : TurnedPlans()) {
    SCOPED_TRACE(plan.name);
    ExpectAgreementAnyway(plan.text, "sm_90a/8", [&](const ConvGeometry& g) {
      EXPECT_TRUE(g.turns_lines);
      EXPECT_EQ(g.channel_rows, plan.has_channel_rows);
    });
  }
}

}  // namespace
}  // namespace kiln::ptx
