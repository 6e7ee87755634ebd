#include "cache/key_text.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

std::string KeyText(const std::string& target, const std::string& grade,
                    const std::string& plan) {
  return "key: 1\ntarget: " + target + "\ngrade: " + grade + "\nplan:\n" + plan;
}

TEST(KeyTextTest, EqualTextsDoNotDiffer) {
  const std::string text = KeyText("cpu", "fp32", "v0 = relu(i0)\n");
  EXPECT_TRUE(CompareKeyTexts(text, text).empty());
  EXPECT_EQ(KeyTextDistance(text, text), 0);
}

TEST(KeyTextTest, NamesTheFieldsThatDiffer) {
  const std::string plan = "v0 = relu(i0)\n";
  const auto differences = CompareKeyTexts(KeyText("sm_90a/132", "fp32", plan),
                                           KeyText("sm_90a/114", "tf32", plan));
  EXPECT_EQ(differences, (std::vector<KeyTextDifference>{
                             {"target", "sm_90a/132", "sm_90a/114"},
                             {"grade", "fp32", "tf32"}}));
}

// Prevents the grade, which plans say again, from hiding what else differs and
// from making another plan look nearer than the same one.
TEST(KeyTextTest, LinesOfThePlanThatRestateAFieldAreNotCompared) {
  const std::string wanted = KeyText("cpu", "tf32", "grade=tf32\na\nb\n");
  const std::string same = KeyText("cpu", "fp32", "grade=fp32\na\nb\n");
  const std::string other = KeyText("cpu", "fp32", "grade=fp32\na\nc\n");
  EXPECT_EQ(CompareKeyTexts(wanted, same),
            (std::vector<KeyTextDifference>{{"grade", "tf32", "fp32"}}));
  EXPECT_EQ(CompareKeyTexts(wanted, other),
            (std::vector<KeyTextDifference>{{"grade", "tf32", "fp32"},
                                            {"plan", "b", "c"}}));
  EXPECT_LT(KeyTextDistance(wanted, same),
            KeyTextDistance(wanted, KeyText("cpu", "tf32", "a\nc\n")));
}

TEST(KeyTextTest, ComparesThePlanAsOneField) {
  const auto differences = CompareKeyTexts(
      KeyText("cpu", "fp32", "i0: f32[2]\nv0 = relu(i0)\n"),
      KeyText("cpu", "fp32", "i0: f32[2]\nv0 = tanh(i0)\nv1 = abs(v0)\n"));
  EXPECT_EQ(differences, (std::vector<KeyTextDifference>{
                             {"plan", "v0 = relu(i0)", "v0 = tanh(i0)"}}));
}

TEST(KeyTextTest, ShowsALongerPlansFirstExtraLine) {
  const auto differences = CompareKeyTexts(KeyText("cpu", "fp32", "a\n"),
                                           KeyText("cpu", "fp32", "a\nb\n"));
  EXPECT_EQ(differences, (std::vector<KeyTextDifference>{{"plan", "", "b"}}));
}

TEST(KeyTextTest, ColonsInThePlanAreNotFields) {
  const auto differences =
      CompareKeyTexts(KeyText("cpu", "fp32", "target: a\n"),
                      KeyText("cpu", "fp32", "target: b\n"));
  EXPECT_EQ(
      differences,
      (std::vector<KeyTextDifference>{{"plan", "target: a", "target: b"}}));
}

TEST(KeyTextTest, ShowsFieldsThatOneSideLacks) {
  EXPECT_EQ(CompareKeyTexts("a: 1\nb: 2\n", "a: 1\nc: 3\n"),
            (std::vector<KeyTextDifference>{{"b", "2", ""}, {"c", "", "3"}}));
}

TEST(KeyTextTest, AnotherTargetIsNearerThanAnotherPlan) {
  const std::string wanted = KeyText("cpu", "fp32", "a\nb\nc\n");
  const int64_t other_target =
      KeyTextDistance(wanted, KeyText("sm_80/108", "tf32", "a\nb\nc\n"));
  const int64_t other_line =
      KeyTextDistance(wanted, KeyText("cpu", "fp32", "a\nx\nc\n"));
  const int64_t other_plan =
      KeyTextDistance(wanted, KeyText("cpu", "fp32", "x\n"));
  EXPECT_EQ(other_target, 2);
  EXPECT_LT(other_target, other_line);
  EXPECT_LT(other_line, other_plan);
}

// Prevents a listing of damaged entries from stopping Explain.
TEST(KeyTextTest, TakesAnyText) {
  for (const char* text :
       {"", "\n", ":", "plan:", "plan", "no colon", "\n\n:"}) {
    EXPECT_EQ(KeyTextDistance(text, text), 0);
    EXPECT_GE(KeyTextDistance("a: 1\nplan:\nx", text), 0);
  }
}

}  // namespace
}  // namespace kiln
