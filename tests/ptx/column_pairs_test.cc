// Few channels that come in pairs of columns (conv_column_pairs.cuh), with
// pixels and with channels as rows: filters of several widths, channels that do
// not fill an octet, ends of rows and columns, several tiles of a block,
// windows behind them, operands that are split. Prevents columns that are
// another's, a weight of a column that the filter has not, and numbers beyond
// an image.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/jit/compile/fastest_schedule.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

std::vector<std::string> PairedPlans() {
  const std::string split =
      Conv("2,3,37,50", "40,3,7,7", "stride=2, padding=3", "y = relu(c)");
  return {
      split,
      "grade tf32\n" + split,
      Conv("2,3,37,50", "64,3,7,7", "stride=2, padding=3", "y = relu(c)",
           "f16"),
      Conv("1,4,41,30", "72,4,7,7", "stride=2, padding=3", "y = silu(c)",
           "bf16"),
      Conv("1,3,40,54", "48,3,4,3", "stride=[1,2], padding=[0,1]",
           "y = gelu(c)"),
      Conv("1,3,30,40", "24,3,2,5", "stride=2, padding=[1,3]", "y = relu(c)",
           "f16"),
      Conv("2,3,40,40", "64,3,7,7", "stride=2, padding=3",
           "r = relu(c)\n"
           "y = max_pool2d(r, kernel_size=3, stride=2, padding=1)",
           "f16"),
      Conv("2,3,40,40", "64,3,7,7", "stride=2, padding=3",
           "y = group_norm(c, num_groups=16)"),
      Conv("1,6,38,44", "64,3,5,3", "stride=2, padding=[2,1], groups=2",
           "y = relu(c)"),
      Conv("1,3,36,40", "40,3,3,7",
           "stride=[1,2], padding=[2,3], "
           "dilation=[3,1]",
           "y = tanh(c)", "bf16"),
      Conv("1,3,6,10", "32,3,7,7", "stride=2, padding=[3,9]", "y = relu(c)"),
  };
}

TEST(PtxColumnPairsTest, AgreesWithTheReference) {
  for (const std::string& text : PairedPlans()) {
    for (const bool channel_rows : {false, true}) {
      SCOPED_TRACE(text + (channel_rows ? "channels" : "pixels"));
      const auto tuning =
          FindConvRank(text, {"sm_90a", 1}, [&](const Kernel& kernel) {
            return kernel.conv && kernel.conv->pairs_columns &&
                   kernel.conv->channel_rows == channel_rows;
          });
      if (!tuning) {
        ADD_FAILURE() << "no candidate brings pairs";
        continue;
      }
      PlanRunOptions as_found;
      as_found.tuning = *tuning;
      PlanRunOptions off_grid = OffGrid();
      off_grid.tuning = *tuning;
      const PlanKernels kernels = Compiled(text, "sm_90a/1", as_found);
      ExpectAgreementWithSpecials(kernels, {}, {as_found},
                                  {as_found, off_grid});
    }
  }
}

}  // namespace
}  // namespace kiln::ptx
