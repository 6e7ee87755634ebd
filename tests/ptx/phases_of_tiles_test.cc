// Transposed filters as large as their stride, of whose phases each has one
// tap: lines, laid lines and copies, and tiles that have all phases; and larger
// strides, of whose phases tiles have several. Prevents rows and columns of
// other phases, scales of other pixels, and rows that end within an access.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/full_matrix.h"
#include "tests/ptx/conv_plan_text.h"
#include "tests/ptx/plan_testing.h"

namespace kiln::ptx {
namespace {

using Kind = std::function<bool(const ConvGeometry&)>;

bool TakesLines(const ConvGeometry& g) {
  return g.takes_lines && !g.merges_rows;
}
bool LaysLines(const ConvGeometry& g) { return g.lays_lines && !g.merges_rows; }
bool CopiesAhead(const ConvGeometry& g) {
  return g.batches_ahead > 0 && !g.merges_rows;
}
bool HasAllPhasesByLines(const ConvGeometry& g) {
  return g.takes_lines && g.merges_rows && !g.lays_lines;
}
bool HasAllPhasesByLaidLines(const ConvGeometry& g) {
  return g.lays_lines && g.merges_rows;
}
bool HasAllPhasesByCopies(const ConvGeometry& g) {
  return g.batches_ahead > 0 && g.merges_rows;
}
bool HasAllPhases(const ConvGeometry& g) {
  return g.merges_rows && !g.takes_lines && g.batches_ahead == 0;
}

bool HasEight(const ConvGeometry& g) { return g.column_phases == 8; }
bool HasFour(const ConvGeometry& g) { return g.column_phases == 4; }
bool HasFourOrMore(const ConvGeometry& g) { return g.column_phases >= 4; }

struct UpsamplingPlan {
  std::string name;
  Kind kind;
  std::string text;
};

// Of f16, bfloat16 and `tf32`.
std::vector<UpsamplingPlan> Plans() {
  const std::string tf32 = "grade tf32\n";
  return {
      {"lines", TakesLines,
       Transpose("2,64,11,20", "64,40,2,2", "stride=2", "y = relu(c)", "f16")},
      {"lines_of_odd_results", TakesLines,
       Transpose("2,40,5,12", "40,72,2,2", "stride=2, output_padding=1",
                 "y = gelu(c)", "bf16")},
      {"all_phases_by_lines", HasAllPhasesByLines,
       Transpose("3,72,13,20", "72,40,2,2", "stride=2", "y = gelu(c)", "bf16")},
      {"all_phases_by_lines_of_two_blocks", HasAllPhasesByLines,
       Transpose("2,136,6,16", "136,200,2,2", "stride=2", "y = relu(c)",
                 "f16")},
      {"copies_of_odd_results", CopiesAhead,
       tf32 + Transpose("2,64,9,20", "64,40,2,2", "stride=2, output_padding=1",
                        "y = gelu(c)")},
      {"all_phases_of_octets", HasAllPhases,
       Transpose("2,40,7,9", "40,24,2,2", "stride=2", "y = silu(c)", "f16")},
      {"copies", CopiesAhead,
       tf32 + Transpose("2,64,9,20", "64,40,2,2", "stride=2", "y = gelu(c)")},
      {"all_phases_by_copies", HasAllPhasesByCopies,
       tf32 + Transpose("2,72,9,20", "72,40,2,2", "stride=2", "y = gelu(c)")},
      {"all_phases_by_laid_lines", HasAllPhasesByLaidLines,
       tf32 + Transpose("2,136,9,18", "136,72,2,2", "stride=2", "y = gelu(c)")},
      {"eight_of_eight", HasEight,
       Transpose("2,40,1,50", "40,72,1,16", "stride=[1,8], padding=[0,4]",
                 "y = leaky_relu(c)", "f16")},
      {"eight_of_eight_tf32", HasEight,
       tf32 + Transpose("2,24,2,22", "24,40,3,16",
                        "stride=[2,8], padding=[1,4]", "y = gelu(c)")},
      {"four_of_eight", HasFour,
       Transpose("2,40,1,50", "40,72,1,16", "stride=[1,8], padding=[0,4]",
                 "y = leaky_relu(c)", "bf16")},
      {"four_of_four_without_some_taps", HasFour,
       Transpose("2,40,1,50", "40,72,1,7",
                 "stride=[1,4], padding=[0,2], output_padding=[0,1]",
                 "y = relu(c)", "f16")},
  };
}

// Of either grade.
std::vector<UpsamplingPlan> GradedPlans() {
  return {
      {"all_phases", HasAllPhases,
       Transpose("2,40,7,18", "40,72,2,2", "stride=2", "y = relu(c)")},
      {"four_or_more_of_eight", HasFourOrMore,
       Transpose("2,40,3,22", "40,72,1,8", "stride=[1,8]", "y = relu(c)")},
      {"all_phases_stored_in_16_bits", HasAllPhases,
       Transpose("2,40,7,18", "40,72,2,2", "stride=2",
                 "y = cast(c, dtype=bf16)")},
      {"laid_lines", LaysLines,
       Transpose("2,136,9,18", "136,72,2,2", "stride=2", "y = relu(c)")},
  };
}

// Also with an infinity and a NaN among the inputs.
void ExpectKindAgrees(const UpsamplingPlan& plan, const std::string& text) {
  ExpectAgreementOfKind(text, 4, {}, [&](const Kernel& kernel) {
    return kernel.conv && plan.kind(*kernel.conv);
  });
}

TEST(PtxPhasesOfTilesTest, AgreeWithTheReference) {
  for (const UpsamplingPlan& plan : Plans()) {
    SCOPED_TRACE(plan.name);
    ExpectKindAgrees(plan, plan.text);
  }
}

TEST(PtxPhasesOfTilesTest, AgreeWithTheReferenceInEachGrade) {
  size_t turn = 0;
  for (const UpsamplingPlan& plan : GradedPlans()) {
    for (const std::string& grade : GradesInTurn(turn++)) {
      SCOPED_TRACE(plan.name + " in " + grade);
      ExpectKindAgrees(plan, "grade " + grade + "\n" + plan.text);
    }
  }
}

}  // namespace
}  // namespace kiln::ptx
