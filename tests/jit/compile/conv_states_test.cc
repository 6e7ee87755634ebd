// Which statistics of convolutions are merged by the blocks that need them.
#include "jit/compile/conv_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/chain_plans.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string NormBeforeLogsumexp(int64_t batch, int64_t size) {
  return fmt::format(R"(
input x: f32[{0},8,{1},{1}]
param w: f32[64,8,3,3]
conv = conv2d(x, w)
norm = group_norm(conv, num_groups=16)
r = add(norm, conv)
y = logsumexp(r, dim=1, keepdim=true)
output y
)",
                     batch, size);
}

// The kernel that gathers statistics.
const Kernel& StatisticsOf(const Schedule& schedule) {
  return *std::find_if(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.partials.has_value(); });
}

bool LeavesStates(const std::string& text, const Target& target = kH100) {
  return StatisticsOf(Fastest(text, target)).leaves_states;
}

// A block has all of an image's 49 pixels.
TEST(ConvStatesTest, WholeStatesAreNotMerged) {
  const Schedule schedule = Fastest(R"(
input x: f32[256,256,7,7]
param w: f32[256,256,3,3]
c = conv2d(x, w, padding=1)
n = group_norm(c, num_groups=8)
y = relu(n)
output y
)");
  const KernelSpec spec = MakeKernelSpec(schedule, StatisticsOf(schedule));
  EXPECT_EQ(spec.entries.size(), 1);
  EXPECT_THAT(WriteUnit(spec), HasSubstr("kStatesAreWhole = true"));
}

TEST(ConvStatesTest, MergedByTheBlocksThatNormalise) {
  const Schedule schedule = Fastest(kResidualChain);
  const Kernel& statistics = StatisticsOf(schedule);
  ASSERT_TRUE(statistics.leaves_states);
  EXPECT_TRUE(statistics.stores.empty());
  const KernelSpec spec = MakeKernelSpec(schedule, statistics);
  EXPECT_EQ(spec.entries.size(), 1);
  EXPECT_THAT(WriteUnit(spec), Not(HasSubstr("Element(")));

  const Kernel& reader = schedule.kernels.back();
  const KernelSpec merging = MakeKernelSpec(schedule, reader);
  EXPECT_THAT(WriteUnit(merging),
              AllOf(HasSubstr("kiln::MergedStates<"),
                    HasSubstr("kiln::ReciprocalStd(v1_state.Variance(), ")));
  const auto states = std::find_if(
      merging.tensors.begin(), merging.tensors.end(),
      [](const KernelTensor& tensor) { return tensor.name == "v1_states"; });
  ASSERT_NE(states, merging.tensors.end());
  EXPECT_EQ(states->place, *statistics.partials);
}

// No other buffer of the workspace may lie there while they are read.
TEST(ConvStatesTest, TheStatesLiveUntilTheyAreRead) {
  const Schedule schedule = Fastest(kResidualChain);
  const int64_t states = 128 * 16 * 12;
  const Kernel& statistics = StatisticsOf(schedule);
  const int64_t splits = statistics.conv->Splits(4);
  EXPECT_EQ(statistics.partials->offset_bytes, 0);
  EXPECT_GE(schedule.workspace_bytes, states * splits);
  for (const std::optional<Place>& home : schedule.homes) {
    if (!home.has_value() || home->slot >= 0) continue;
    EXPECT_GE(home->offset_bytes, states * splits);
  }
}

TEST(ConvStatesTest, NotForKernelsThatShareNoChannels) {
  EXPECT_FALSE(LeavesStates(kPoolChain, kA100));  // its reader is pointwise
  EXPECT_FALSE(LeavesStates(kResidualChain, kA100));
}

TEST(ConvStatesTest, NotWhereItTakesLongerThanALaunch) {
  EXPECT_TRUE(LeavesStates(NormBeforeLogsumexp(128, 128)));
  EXPECT_FALSE(LeavesStates(
      NormBeforeLogsumexp(2048, 256)));  // for every wave of blocks
  EXPECT_FALSE(LeavesStates(NormBeforeLogsumexp(2, 1024)));  // of many states
}

}  // namespace
}  // namespace kiln
