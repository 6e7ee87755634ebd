// Prevents: a plan from the network that crashes the daemon, overflows its
// arithmetic or fails with anything but a client error.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "jit/plan/canonical.h"
#include "jit/plan/errors.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/validate.h"
#include "tests/jit/plan/plan_generator.h"
#include "tests/jit/plan/plan_mutator.h"

namespace kiln {
namespace {

constexpr uint64_t kSeed = 77;
constexpr int kHostilePlans = 20000;

void ExpectClientError(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsUnimplemented(status))
      << status;
  const ErrorDetail detail = DetailOf(status);
  EXPECT_FALSE(detail.field.empty()) << status;
  EXPECT_FALSE(detail.value.empty()) << status;
  EXPECT_FALSE(detail.limit.empty()) << status;
}

// Negative control: without the bound of an operand's index this test fails,
// without the check of a pooling's stride it divides by zero.
TEST(HostilePlanTest, ValidationAnswersEveryDamagedPlan) {
  PlanGenerator generator(kSeed, {8, 2048, true});
  TestRandom random(kSeed);
  int refused = 0;
  for (int i = 0; i < kHostilePlans; ++i) {
    Plan plan = generator.Next();
    const int64_t mutations = random.Int(1, 3);
    for (int64_t j = 0; j < mutations; ++j) MutatePlan(&random, &plan);
    const auto canonical = Canonicalize(plan);
    const std::string text = ToText(plan);
    if (canonical.ok()) {
      EXPECT_FALSE(CanonicalText(*canonical).empty());
      EXPECT_TRUE(ParsePlanText(text).ok()) << text;
      continue;
    }
    ++refused;
    ExpectClientError(canonical.status());
    if (HasFailure()) FAIL() << "plan " << i << "\n" << text;
  }
  EXPECT_GT(refused, kHostilePlans / 3);
  EXPECT_LT(refused, kHostilePlans);
}

// A byte changed, a piece cut out or doubled, the end gone, words that do not
// belong where they stand.
std::string Damage(TestRandom* random, std::string text) {
  const auto position = [&] {
    return random->Int(0, static_cast<int64_t>(text.size()) - 1);
  };
  const int64_t size = random->Int(1, 12);
  switch (random->Int(0, 4)) {
    case 0:
      text[position()] = static_cast<char>(random->Int(0, 255));
      return text;
    case 1:
      return text.erase(position(), size);
    case 2:
      return text.insert(position(), text.substr(position(), size));
    case 3:
      return text.substr(0, position());
    default: {
      constexpr std::string_view kWords[] = {
          "none, ",
          "none, none, none, none, none, none, ",
          "1e999, ",
          "(",
          "]",
          "stride=[1,2,3], ",
          "9223372036854775808, ",
          "="};
      const size_t gap = text.find_first_of("(,[ ", position());
      if (gap == std::string::npos) return text;
      return text.insert(gap + 1, kWords[random->Int(0, 7)]);
    }
  }
}

// Negative control: without the bound of the positional operands this test
// writes past their end and crashes.
TEST(HostilePlanTest, ParsingAnswersEveryDamagedText) {
  PlanGenerator generator(kSeed, {8, 2048, true});
  TestRandom random(kSeed);
  int refused = 0;
  for (int i = 0; i < kHostilePlans; ++i) {
    std::string text = ToText(generator.Next());
    const int64_t damages = random.Int(1, 3);
    for (int64_t j = 0; j < damages && !text.empty(); ++j) {
      text = Damage(&random, text);
    }
    const absl::StatusOr<Plan> plan = ParsePlanText(text);
    const absl::Status status =
        plan.ok() ? ValidatePlan(*plan).status() : plan.status();
    if (status.ok()) continue;
    ++refused;
    ExpectClientError(status);
    if (HasFailure()) FAIL() << "text " << i << "\n" << text;
  }
  EXPECT_GT(refused, kHostilePlans / 3);
}

}  // namespace
}  // namespace kiln
