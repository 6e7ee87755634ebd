// Convolutions by filters so large that chunks have a part of their rows
// (conv_tile.cuh). Prevents rows that no part has or that count twice where two
// have them, patches that begin in the wrong row, and weights of 0 that meet an
// infinity.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/full_matrix.h"
#include "tests/jit/compile/fastest_schedule.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

using NamedPlan = std::pair<std::string, std::string>;

std::vector<NamedPlan> Plans() {
  const std::string relu = "y = relu(c)";
  return {
      {"three_rows_each", Conv("1,16,12,14", "64,16,9,9", "padding=4", relu)},
      {"two_parts_have_a_row",
       Conv("1,32,21,30", "40,32,7,7", "stride=7, padding=3", relu)},
      {"patches", Conv("2,20,24,40", "16,20,8,8", "stride=8", relu)},
      {"strides_and_channels_left_over",
       Conv("1,20,63,47", "32,20,11,11", "stride=4, padding=2", relu)},
      {"rows_taken_apart",
       Conv("1,8,30,40", "16,8,9,9", "padding=12, dilation=3", relu)},
      {"dilated_with_a_stride", Conv("1,16,40,36", "24,16,9,9",
                                     "stride=2, padding=8, dilation=2", relu)},
      {"tall", Conv("1,16,24,20", "16,16,20,3", "padding=[9,1]", relu)},
      {"groups", Conv("1,32,14,14", "32,16,9,9", "padding=4, groups=2", relu)},
      {"transposed", Transpose("1,16,12,14", "16,32,9,9", "padding=4", relu)},
      {"transposed_of_which_two_have_a_row",
       Transpose("1,48,14,14", "48,32,10,10", "padding=4", relu)},
      {"strips", Conv("8,8,120,30", "64,8,9,9", "padding=4", relu)},
      {"few_channels",
       Conv("16,3,160,96", "64,3,11,11", "stride=4, padding=2", relu)},
      {"statistics", Conv("2,16,24,24", "64,16,9,9", "padding=4",
                          "g = gelu(c)\ny = group_norm(g, num_groups=8)")},
      {"images",
       Conv("32,64,8,8", "64,64,9,9", "padding=4", "y = mean(c, dim=[2,3])")},
      {"shared_sums", Conv("1,160,28,28", "48,160,7,7", "stride=7", relu)},
  };
}

// How many of the plans have parts of rows.
size_t PlansInParts(const std::string& grade) {
  const std::vector<NamedPlan> plans = Plans();
  return std::count_if(plans.begin(), plans.end(), [&](const NamedPlan& plan) {
    const Schedule schedule = Fastest("grade " + grade + "\n" + plan.second);
    return ConvolutionOf(schedule).conv->row_parts > 1;
  });
}

// Of a product in `tf32` there is less to be cut.
TEST(PtxRowPartsTest, RowsAreCut) {
  EXPECT_EQ(PlansInParts("fp32"), Plans().size());
  EXPECT_GE(PlansInParts("tf32"), 2u);
}

TEST(PtxRowPartsTest, AgreeWithTheReference) {
  size_t turn = 0;
  for (const auto& [name, text] : Plans()) {
    for (const std::string& grade : GradesInTurn(turn++)) {
      SCOPED_TRACE(name + " in " + grade);
      ExpectAgreementAnyway("grade " + grade + "\n" + text, "sm_90a/132",
                            [](const ConvGeometry&) {});
    }
  }
}

// Each of their rows is a part.
TEST(PtxRowPartsTest, DilatedFiltersWithAStrideAgreeIn16Bits) {
  ExpectAgreementAnyway(
      Conv("2,64,40,44", "64,64,3,3", "stride=2, padding=3, dilation=3",
           "y = relu(c)", "f16"),
      "sm_90a/132", [](const ConvGeometry& g) { EXPECT_EQ(g.row_parts, 3); });
}

// Operands that are multiplied as they are stored, row by row: of an odd number
// none is in two parts, for weights of 2^-24 have no half.
TEST(PtxRowPartsTest, LargeFiltersWithAStrideAgreeIn16Bits) {
  ExpectAgreementAnyway(
      Conv("4,64,28,28", "128,64,7,7", "stride=2, padding=3", "y = relu(c)",
           "f16"),
      "sm_90a/16", [](const ConvGeometry& g) { EXPECT_EQ(g.row_parts, 7); });
}

// Scaled all the same: two columns in an octet, and rows of two parts.
TEST(PtxRowPartsTest, FewChannelsOf16BitsAgree) {
  ExpectAgreementAnyway(Conv("8,3,64,64", "64,3,7,7", "stride=2, padding=3",
                             "y = relu(c)", "f16"),
                        "sm_90a/132", [](const ConvGeometry&) {});
}

}  // namespace
}  // namespace kiln::ptx
