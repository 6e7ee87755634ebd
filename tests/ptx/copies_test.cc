// Batches of f32 that producers copy ahead (conv_copies.cuh), with pixels and
// with channels as rows: chunks and octets that are not full, pixels beyond an
// image, several tiles of a block, groups, chunks whose scales are far apart.
// Prevents numbers of other channels or pixels, places that are filled before
// they have been read, and batches that are lost where a chunk is brought
// again.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/full_matrix.h"
#include "tests/jit/compile/fastest_schedule.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct CopiedPlan {
  std::string name;
  std::string text;
  std::vector<double> channel_factors = {1};
  std::vector<double> row_factors = {1};
  std::vector<bool> channel_rows = {false, true};
  bool takes_turns = false;  // whether producers do, chunk by chunk
};

std::vector<CopiedPlan> CopiedPlans() {
  return {
      {.name = "several_chunks",
       .text = Conv("2,192,21,44", "72,192,1,1", "", "y = relu(c)"),
       .takes_turns = true},
      {"chunk_not_full", Conv("2,100,12,40", "60,100,1,1", "", "y = silu(c)")},
      {"octet_not_full", Conv("3,75,12,36", "40,75,1,1", "", "y = gelu(c)")},
      {"windows",
       Conv("2,64,24,24", "64,64,1,1", "", "y = max_pool2d(c, kernel_size=2)")},
      {"channels_reduced",
       Conv("2,128,24,40", "64,128,1,1", "", "y = logsumexp(c, dim=1)")},
      {"images_reduced",
       Conv("3,64,16,24", "64,64,1,1", "", "y = mean(c, dim=[2,3])")},
      {"groups",
       Conv("2,128,16,40", "160,64,1,1", "groups=2", "y = hardswish(c)")},
      {.name = "joined_groups",
       .text = Conv("2,128,16,40", "128,16,1,1", "groups=8", "y = relu(c)")},
      {.name = "residual",
       .text = Conv("2,64,24,40", "64,64,1,1", "", "y = add(c, x)"),
       .channel_rows = {false}},
      {.name = "scales_far_apart",
       .text = Conv("2,256,12,40", "64,256,1,1", "", "y = relu(c)"),
       .channel_factors = {1, 1e-9, 1e8},
       .row_factors = {1, 1e12, 1e-12},
       .takes_turns = true},
  };
}

bool IsOf(const CopiedPlan& plan, bool channel_rows, const ConvGeometry& g) {
  const bool takes_turns = g.chunk_producers() > 1 && g.chunks() > 1;
  return g.batches_ahead > 0 && g.channel_rows == channel_rows &&
         (takes_turns || !plan.takes_turns);
}

// The fastest candidate that copies ahead and has channels as rows, or not.
std::optional<Tuning> FindCopying(const CopiedPlan& plan,
                                  const std::string& text, bool channel_rows) {
  return FindConvRank(text, {"sm_90a", 2}, [&](const Kernel& kernel) {
    return kernel.conv && IsOf(plan, channel_rows, *kernel.conv);
  });
}

// Also with an infinity and a NaN among the inputs.
void ExpectCopiesAgree(const CopiedPlan& plan, const std::string& text,
                       const Tuning& tuning) {
  InputOptions inputs;
  inputs.channel_factors = plan.channel_factors;
  inputs.row_factors = plan.row_factors;
  ExpectAgreementWithSpecials(Compiled(text, "sm_90a/2", {.tuning = tuning}),
                              inputs, {{}, Interrupted()},
                              {Interrupted(), OffGrid()});
}

TEST(PtxCopiesTest, AgreeWithTheReference) {
  size_t turn = 0;
  for (const CopiedPlan& plan : CopiedPlans()) {
    for (const bool channel_rows : plan.channel_rows) {
      for (const std::string& grade : GradesInTurn(turn + channel_rows)) {
        SCOPED_TRACE(plan.name + " in " + grade +
                     (channel_rows ? ", channels" : ", pixels"));
        const std::string text = "grade " + grade + "\n" + plan.text;
        const auto tuning = FindCopying(plan, text, channel_rows);
        if (!tuning) ADD_FAILURE();
        if (tuning) ExpectCopiesAgree(plan, text, *tuning);
      }
    }
    ++turn;
  }
}

}  // namespace
}  // namespace kiln::ptx
