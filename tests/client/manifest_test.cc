#include "client/cli/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/file_bytes.h"

namespace kiln::cli {
namespace {

constexpr char kPlan[] = R"("input x: f32[4]\ny = relu(x)\noutput y\n")";

std::vector<WorkItem> Load(const std::string& text,
                           const std::vector<std::string>& targets = {}) {
  const std::string path = testing::TempDir() + "manifest_test.jsonl";
  EXPECT_TRUE(WriteFile(path, text).ok());
  const auto items = LoadWork({path}, targets);
  EXPECT_TRUE(items.ok());
  return *items;
}

TEST(ManifestTest, LineMakesOneItemForEachTarget) {
  const auto items = Load(std::string("{\"plan\": ") + kPlan +
                          ", \"targets\": [\"a100\", \"cpu\"], "
                          "\"grade\": \"tf32\"}\n");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].target, "sm_80/108");
  EXPECT_EQ(items[1].target, "cpu");
  EXPECT_EQ(items[0].plan->grade, Grade::kTf32);
  EXPECT_NE(items[0].Id(), items[1].Id());
}

TEST(ManifestTest, GivenTargetsReplaceTheManifests) {
  const auto items =
      Load(std::string("{\"plan\": ") + kPlan + ", \"targets\": [\"a100\"]}\n",
           {"cpu"});
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].target, "cpu");
}

TEST(ManifestTest, LinesMayNameTheirVariant) {
  const auto items = Load(std::string("{\"plan\": ") + kPlan +
                          ", \"targets\": [\"a100\"], \"variant\": "
                          "\"rows1\"}\n{\"plan\": " +
                          kPlan + ", \"targets\": [\"a100\"]}\n");
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].variant, "rows1");
  EXPECT_EQ(items[1].variant, "");
  EXPECT_NE(items[0].Id(), items[1].Id());
}

// Prevents that a field which is misspelt, or newer than this build, is left
// out of the work in silence.
TEST(ManifestTest, AnyOtherFieldIsNamed) {
  const auto items = Load(std::string("{\"plan\": ") + kPlan +
                          ", \"targets\": [\"cpu\"], \"varaint\": 1}\n");
  ASSERT_EQ(items.size(), 1u);
  EXPECT_THAT(std::string(items[0].plan.status().message()),
              testing::HasSubstr("\"varaint\" is no field of a manifest "
                                 "(allowed: plan, targets, grade, variant)"));
}

// Prevents one bad line from stopping a fleet's prewarm.
TEST(ManifestTest, EveryBadLineIsAnItemWithItsStatus) {
  const auto items = Load(
      std::string("nonsense\n{}\n[]\n{\"plan\": 3}\n") +
      "{\"plan\": \"nowhere.kiln\"}\n" + "{\"plan\": " + kPlan + "}\n" +
      "{\"plan\": " + kPlan + ", \"targets\": 3}\n" + "{\"plan\": " + kPlan +
      ", \"targets\": [3]}\n" + "{\"plan\": " + kPlan +
      ", \"targets\": [\"q\"]}\n" + "{\"plan\": " + kPlan +
      ", \"targets\": [\"cpu\"], \"grade\": 1}\n" + "{\"plan\": " + kPlan +
      ", \"targets\": [\"cpu\"], \"variant\": 1}\n" + "{\"plan\": " + kPlan +
      ", \"targets\": [\"cpu\"]}");
  ASSERT_EQ(items.size(), 12u);
  for (size_t i = 0; i < 11; ++i) {
    EXPECT_FALSE(items[i].plan.ok()) << items[i].name;
  }
  EXPECT_TRUE(items[11].plan.ok()) << items[11].plan.status().ToString();
  EXPECT_THAT(items[2].name, testing::EndsWith(":3"));
}

}  // namespace
}  // namespace kiln::cli
