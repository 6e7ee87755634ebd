#include "tests/shape_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "jit/plan/op_table.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

TEST(ShapeSetsTest, EveryPlanIsValid) {
  for (const std::string& set : ShapeSetNames()) {
    for (const NamedPlan& named : PlansOfShapeSet(set)) {
      const auto plan = ParsePlanText(named.text);
      ASSERT_TRUE(plan.ok()) << named.name << ": " << plan.status();
      EXPECT_TRUE(ValidatePlan(*plan).ok())
          << named.name << ": " << ValidatePlan(*plan).status() << "\n"
          << named.text;
    }
  }
}

TEST(ShapeSetsTest, NamesAreUniqueAndReadable) {
  std::set<std::string> names;
  for (const std::string& set : ShapeSetNames()) {
    EXPECT_FALSE(PlansOfShapeSet(set).empty()) << set;
    for (const NamedPlan& named : PlansOfShapeSet(set)) {
      EXPECT_THAT(named.name, testing::MatchesRegex("[a-z0-9_]+"));
      EXPECT_TRUE(names.insert(named.name).second) << named.name;
    }
  }
}

TEST(ShapeSetsTest, TinyHoldsEveryOpInEveryType) {
  std::set<std::pair<OpKind, DataType>> seen;
  for (const NamedPlan& named : PlansOfShapeSet("tiny")) {
    const auto plan = ParsePlanText(named.text);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const Op& op : plan->ops) {
      seen.emplace(op.kind, plan->inputs[0].desc.dtype);
    }
  }
  for (const OpInfo& info : AllOps()) {
    for (DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
      EXPECT_EQ(seen.count({info.kind, type}), 1u)
          << info.name << " " << DataTypeName(type);
    }
  }
}

TEST(ShapeSetsTest, CoverageNamesTheSetsThatNeverRan) {
  ShapeSetCoverage coverage;
  EXPECT_EQ(coverage.NeverRan(), ShapeSetNames());
  for (const std::string& set : ShapeSetNames()) coverage.Ran(set);
  EXPECT_TRUE(coverage.NeverRan().empty());
}

}  // namespace
}  // namespace kiln
