// Transposed convolutions whose phases are channels of an ordinary one.
// Prevents phases, taps and places of others, neighbours that another tile has,
// results that paddings cut off or add, and blocks that go through another's
// columns.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/full_matrix.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

struct PhasesPlan {
  std::string name;
  std::string text;
};

bool HasChannelPhases(const Kernel& kernel) {
  return kernel.conv && kernel.conv->problem.has_channel_phases() &&
         !kernel.conv->walks_columns && !kernel.conv->turns_lines;
}
bool WalksColumns(const Kernel& kernel) {
  return kernel.conv && kernel.conv->walks_columns;
}
bool TurnsLines(const Kernel& kernel) {
  return kernel.conv && kernel.conv->problem.has_channel_phases() &&
         kernel.conv->turns_lines;
}

void ExpectEachAgrees(const std::vector<PhasesPlan>& plans,
                      bool (*is)(const Kernel&)) {
  for (const PhasesPlan& plan : plans) {
    SCOPED_TRACE(plan.name);
    ExpectAgreementOfKind(plan.text, 4, {}, is);
  }
}

TEST(PtxChannelPhasesTest, AgreeWithTheReference) {
  const std::string bias = "y = relu(c)";
  ExpectEachAgrees(
      {{"eight", Transpose("2,24,1,37", "24,40,1,16",
                           "stride=[1,8], padding=[0,4]", bias, "f16")},
       {"pairs", Transpose("1,40,5,7", "40,10,8,8",
                           "stride=4, padding=2, output_padding=1",
                           "y = gelu(c)", "bf16")},
       {"fours", Transpose("1,32,7,10", "32,17,4,4", "stride=2, padding=1",
                           bias, "f16")},
       {"fours_from_the_first",
        Transpose("1,16,6,9", "16,20,4,4", "stride=2", bias, "bf16")},
       {"fours_in_pairs",
        Transpose("1,32,6,9", "32,24,4,4", "stride=2, padding=1", bias, "f16")},
       {"single",
        Transpose("2,16,6,5", "16,7,6,6", "stride=3, padding=1", bias, "f16")},
       {"single_of_odd_rows",
        Transpose("1,16,4,6", "16,9,4,4",
                  "stride=2, padding=1, output_padding=1", bias, "f16")},
       {"phases_cut_by_blocks",
        "input x: f16[2,16,3,5]\nparam w: f16[16,12,6,16]\n"
        "param b: f16[12]\nc = conv_transpose2d(x, w, b, stride=[3,8], "
        "padding=[1,4])\ny = gelu(c)\noutput y\n"},
       {"a_stride_of_one",
        Transpose("1,32,6,8", "32,16,3,8", "stride=[1,4], padding=[1,2]", bias,
                  "f16")},
       {"places_cut_off",
        Transpose("1,32,6,8", "32,24,4,4",
                  "stride=2, padding=3, output_padding=[1,0]", bias, "f16")}},
      HasChannelPhases);
}

TEST(PtxChannelPhasesTest, BlocksWalkColumns) {
  ExpectEachAgrees(
      {{"signal",
        Transpose("3,24,1,90", "24,40,1,16", "stride=[1,8], padding=[0,4]",
                  "y = leaky_relu(c)", "f16")},
       {"rows", Transpose("5,40,9,20", "40,16,8,8", "stride=4, padding=2",
                          "y = relu(c)", "f16")}},
      WalksColumns);
}

TEST(PtxChannelPhasesTest, LinesAreTurned) {
  ExpectEachAgrees({{"turned", Transpose("2,40,1,72", "40,72,1,8",
                                         "stride=[1,4], padding=[0,2]",
                                         "y = relu(c)", "f16")}},
                   TurnsLines);
}

// Scaled, in both grades.
TEST(PtxChannelPhasesTest, AgreeWithTheReferenceInEachGrade) {
  const std::vector<PhasesPlan> plans = {
      {"signal", Transpose("3,72,1,90", "72,24,1,16",
                           "stride=[1,8], padding=[0,4]", "y = leaky_relu(c)")},
      {"image", Transpose("1,40,7,10", "40,18,6,6", "stride=3, padding=2",
                          "y = tanh(c)")},
      {"fours", Transpose("1,40,7,10", "40,18,4,4", "stride=2, padding=1",
                          "y = cast(c, dtype=f16)")}};
  size_t turn = 0;
  for (const PhasesPlan& plan : plans) {
    for (const std::string& grade : GradesInTurn(turn++)) {
      SCOPED_TRACE(plan.name + " in " + grade);
      ExpectAgreementOfKind(
          "grade " + grade + "\n" + plan.text, 4, {}, [](const Kernel& kernel) {
            return HasChannelPhases(kernel) || WalksColumns(kernel);
          });
    }
  }
}

}  // namespace
}  // namespace kiln::ptx
