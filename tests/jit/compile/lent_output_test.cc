// Where values lie between kernels: in the workspace, or in an output.
#include "jit/compile/lent_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A convolution of 64 MB of results, of images that no chip holds, and its
// norm, with `rest` behind it.
std::string LendingChain(const std::string& rest) {
  return R"(
input x: f32[4,64,250,250]
input z: f32[4,64,250,250]
param w: f32[64,64,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=8)
)" + rest;
}

constexpr int64_t kStored = int64_t{4} * 64 * 250 * 250 * 4;

// The slot in which the convolution's result lies; -1: in the workspace.
int SlotOfConvolution(const std::string& text) {
  const Schedule schedule = Fastest(text);
  for (const Node& node : schedule.lowered.nodes) {
    if (node.kind == NodeKind::kConv2d) {
      return schedule.homes[node.results[0]].value_or(Place{-2}).slot;
    }
  }
  return -3;
}

TEST(LentOutputTest, TheResultOfAChainLendsItsMemory) {
  const std::string text = LendingChain("y = relu(n)\noutput y");
  EXPECT_EQ(SlotOfConvolution(text), 2);  // behind x and w; z is not used
  EXPECT_LT(Fastest(text).workspace_bytes, 1 << 20);
}

TEST(LentOutputTest, OneKernelThatFinishesItselfToo) {
  const Schedule schedule = Fastest(TransposedChain("[530,64,14,14]"));
  EXPECT_FALSE(schedule.kernels.back().group.finish.empty());
  EXPECT_LT(schedule.workspace_bytes, 1 << 20);
}

TEST(LentOutputTest, SoDoTheExtremesOfWindows) {
  EXPECT_LT(Fastest(kPoolChain).workspace_bytes, 1 << 20);
}

// Two pointers to one place would let the compiler read what was there before.
TEST(LentOutputTest, TheLastReaderHasOnePointer) {
  const Schedule schedule = Fastest(LendingChain("y = relu(n)\noutput y"));
  const KernelSpec spec = MakeKernelSpec(schedule, schedule.kernels.back());
  const std::string unit = WriteUnit(spec);
  EXPECT_THAT(unit, HasSubstr("kiln::Fetch(t.output0, at.i"));
  EXPECT_THAT(unit, HasSubstr("kiln::Put(held.output0"));
  EXPECT_THAT(unit, Not(HasSubstr("const float* __restrict__ output0")));
}

TEST(LentOutputTest, AnotherTypeOrExtentsHaveNoRoom) {
  EXPECT_EQ(SlotOfConvolution(LendingChain("y = relu(n)\noutput y: f16")), -1);
  EXPECT_EQ(SlotOfConvolution(
                LendingChain("r = relu(n)\ny = mean(r, dim=[2,3])\noutput y")),
            -1);
}

// What other kernels have written must stay.
TEST(LentOutputTest, OutputsOfOtherKernelsStay) {
  EXPECT_EQ(SlotOfConvolution(LendingChain(
                "s = sigmoid(z)\nm = mean(s, dim=[0,2,3], keepdim=true)\n"
                "y = mul(n, m)\noutput s\noutput y")),
            4);
}

TEST(LentOutputTest, AnOutputLiesWhereItIs) {
  EXPECT_EQ(SlotOfConvolution(LendingChain("y = relu(n)\noutput y\noutput c")),
            3);
}

// A convolution reads windows of it, while other blocks write the output.
TEST(LentOutputTest, NotToTheInputOfTheReadersOwnConvolution) {
  const Schedule schedule = Fastest(R"(
input z: f32[1024,96,28,28]
param w: f32[96,96,3,3]
x = relu(z)
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=8)
y = add(n, x)
output y
)");
  EXPECT_FALSE(schedule.kernels.back().group.finish.empty());
  EXPECT_GE(schedule.workspace_bytes, int64_t{1024} * 96 * 28 * 28 * 4);
}

// Two values at a time need two places.
TEST(LentOutputTest, EachOutputLendsOnce) {
  const Schedule schedule = Fastest(R"(
input x: f32[4,64,250,250]
param w: f32[64,64,3,3]
param v: f32[64,64,3,3]
c = conv2d(x, w, padding=1)
d = conv2d(x, v, padding=1)
n = group_norm(c, num_groups=8)
m = group_norm(d, num_groups=8)
y = add(n, m)
output y
)");
  EXPECT_GE(schedule.workspace_bytes, kStored);
  EXPECT_LT(schedule.workspace_bytes, 2 * kStored);
}

}  // namespace
}  // namespace kiln
