#include "jit/compile/compile_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "jit/plan/plan_text.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr char kText[] = R"(
input x: f32[2,8,4,4]
param w: f32[8]
y = group_norm(x, w, num_groups=4, eps=1e-05)
z = clamp(y, min=0)
output z: f16
)";

CompileRequest Request(const std::string& text = kText) {
  return {*Canonicalize(*ParsePlanText(text)), {"sm_90a", 132}, "aa+bb"};
}

std::string Key(const CompileRequest& request) {
  return KeyOf(KeyText(request));
}

std::string Edited(std::string_view from, std::string_view to) {
  std::string text = kText;
  return text.replace(text.find(from), from.size(), to);
}

TEST(CompileRequestTest, KeyTextNamesEachField) {
  EXPECT_THAT(KeyText(Request()),
              StartsWith("key: 1\ncompiler: " + std::string(CompilerDigest()) +
                         "\ntarget: sm_90a/132\ntoolchain: aa+bb\n"
                         "grade: fp32\nvariant: auto\n"));
  EXPECT_THAT(KeyText(Request()), HasSubstr(CanonicalText(Request().plan)));
}

TEST(CompileRequestTest, KeyIs64HexadecimalDigits) {
  EXPECT_THAT(Key(Request()), MatchesRegex("[0-9a-f]{64}"));
  EXPECT_THAT(std::string(CompilerDigest()), MatchesRegex("[0-9a-f]{64}"));
}

TEST(CompileRequestTest, EqualRequestsHaveEqualKeys) {
  EXPECT_EQ(Key(Request()), Key(Request()));
  EXPECT_EQ(Key(Request()),
            Key(Request(Edited("z = clamp(y", "z = clamp( y"))));
}

// A field that the key forgets would hand out another request's kernel.
TEST(CompileRequestTest, EveryFieldChangesTheKey) {
  std::vector<CompileRequest> requests(6, Request());
  requests[1].target.arch = "sm_90";
  requests[2].target.sm_count = 114;
  requests[3].toolchain = "aa+bc";
  requests[4].variant = "tuned-1";
  requests[5].plan.plan.grade = Grade::kTf32;
  for (const char* changed : {"eps=1e-06", "eps=1.0000001e-05", "eps=0.0"}) {
    requests.push_back(Request(Edited("eps=1e-05", changed)));
  }
  requests.push_back(Request(Edited("num_groups=4", "num_groups=2")));
  requests.push_back(Request(Edited("min=0", "max=0")));
  requests.push_back(Request(Edited("min=0", "min=-0.0")));
  requests.push_back(Request(Edited("z: f16", "z: bf16")));
  requests.push_back(Request(Edited("x: f32", "x: f16")));
  requests.push_back(Request(Edited("param w", "input w")));
  requests.push_back(Request(Edited("[2,8,4,4]", "[2,8,4,5]")));

  std::set<std::string> keys;
  for (const CompileRequest& request : requests) {
    EXPECT_TRUE(keys.insert(Key(request)).second) << KeyText(request);
  }
}

TEST(CompileRequestTest, NamesAreNoPartOfTheKey) {
  EXPECT_EQ(Key(Request()), Key(Request(R"(
input image: f32[2,8,4,4]
param gamma: f32[8]
n = group_norm(image, gamma, num_groups=4, eps=1e-05)
c = clamp(n, min=0)
output c: f16
)")));
}

}  // namespace
}  // namespace kiln
