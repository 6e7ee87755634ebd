// The examples and the table of docs/plan-language.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "jit/plan/canonical.h"
#include "jit/plan/composed_ops.h"
#include "jit/plan/op_table.h"
#include "jit/plan/plan_text.h"

namespace kiln {
namespace {

std::string Page(const std::string& name = "plan-language.md") {
  std::ifstream file(KILN_SOURCE_DIR "/docs/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The fenced blocks marked "plan".
std::vector<std::string> Examples() {
  const std::string page = Page();
  const std::string fence = "```plan\n";
  std::vector<std::string> examples;
  size_t at = page.find(fence);
  while (at != std::string::npos) {
    at += fence.size();
    const size_t end = page.find("```", at);
    examples.push_back(page.substr(at, end - at));
    at = page.find(fence, end);
  }
  return examples;
}

TEST(PlanLanguageDocTest, ExamplesAreValid) {
  EXPECT_GE(Examples().size(), 5u);
  for (const std::string& text : Examples()) {
    const auto plan = ParsePlanText(text);
    ASSERT_TRUE(plan.ok()) << plan.status() << "\n" << text;
    EXPECT_TRUE(Canonicalize(*plan).ok())
        << Canonicalize(*plan).status() << "\n"
        << text;
  }
}

TEST(PlanLanguageDocTest, LastTwoExamplesAreOnePlan) {
  const std::vector<std::string> examples = Examples();
  ASSERT_GE(examples.size(), 2u);
  std::vector<std::string> texts;
  for (size_t i = examples.size() - 2; i < examples.size(); ++i) {
    texts.push_back(CanonicalText(*Canonicalize(*ParsePlanText(examples[i]))));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(PlanLanguageDocTest, TableListsEveryOp) {
  const std::string page = Page();
  for (const OpInfo& info : AllOps()) {
    const std::string row =
        fmt::format("| {} | `{}` ", static_cast<int>(info.kind), info.name);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(PlanLanguageDocTest, OpsListsWhatOtherOpsMake) {
  const std::string page = Page("ops.md");
  for (const ComposedOp& op : ComposedOps()) {
    const std::string row =
        fmt::format("| `{}` | `{}` | {} |", op.name, op.statements, op.where);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(PlanLanguageDocTest, WhatOtherOpsMakeIsValid) {
  for (const ComposedOp& op : ComposedOps()) {
    const std::string text = fmt::format(
        "input x: f32[2,4,1,8]\nparam w: f32[6,4,1,1]\nparam g: f32[4,1,1]\n"
        "{}\noutput y\n",
        std::regex_replace(std::string(op.statements), std::regex("; "), "\n"));
    const auto plan = ParsePlanText(text);
    ASSERT_TRUE(plan.ok()) << plan.status() << "\n" << text;
    EXPECT_TRUE(Canonicalize(*plan).ok()) << text;
    EXPECT_EQ(FindOpByName(op.name), nullptr) << op.name;
  }
}

}  // namespace
}  // namespace kiln
