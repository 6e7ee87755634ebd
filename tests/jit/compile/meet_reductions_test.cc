// Reductions that are moved to others of the same value. Prevents a second pass
// over a tensor because a plan computes something between two reductions.
#include "jit/compile/meet_reductions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;

// What `later` is, behind a mean over channels and a convolution of that.
std::string Between(const std::string& later) {
  return fmt::format(
      "input x: f32[8,64,32,32]\ninput z: f32[8,64,32,32]\n"
      "param w: f32[1,1,7,7]\n"
      "m = mean(x, dim=1, keepdim=true)\nc = conv2d(m, w, padding=3)\n"
      "a = {}\ny = mul(c, a)\noutput y\n",
      later);
}

std::vector<std::string> Order(const std::string& text) {
  std::vector<std::string> order;
  const LoweredPlan plan = MeetReductions(LoweredOf(text));
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const Node& node = plan.nodes[i];
    const std::string head = node.text.substr(node.text.find("= ") + 2);
    order.push_back(head.substr(0, head.find('(')));
    for (const int result : node.results) {
      EXPECT_EQ(plan.values[result].producer, static_cast<int>(i));
    }
  }
  return order;
}

TEST(MeetReductionsTest, OfTheSameValueStandTogether) {
  EXPECT_THAT(Order(Between("amax(x, dim=1, keepdim=true)")),
              ElementsAre("mean", "amax", "conv2d", "mul"));
}

TEST(MeetReductionsTest, OthersStayWhereTheyAre) {
  for (const char* later :
       {"amax(z, dim=1, keepdim=true)", "amax(x, dim=2, keepdim=true)",
        "amax(m, dim=1, keepdim=true)"}) {
    EXPECT_THAT(Order(Between(later)),
                ElementsAre("mean", "conv2d", "amax", "mul"))
        << later;
  }
}

TEST(MeetReductionsTest, OneKernelTakesBoth) {
  const Schedule schedule = Fastest(Between("amax(x, dim=1, keepdim=true)"));
  ASSERT_EQ(schedule.kernels.size(), 2);
  EXPECT_TRUE(schedule.kernels.front().rows->is_chain());
}

}  // namespace
}  // namespace kiln
