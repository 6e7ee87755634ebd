// Generated units against goldens, which people read and
// `kiln compile --show` prints. To change them on purpose:
//   specialize_test --update_goldens
#include "jit/compile/specialize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "fmt/format.h"
#include "jit/plan/plan_text.h"

namespace kiln {
namespace {

bool update_goldens = false;

std::string UnitsOf(const Schedule& schedule) {
  std::string units;
  for (const Kernel& kernel : schedule.kernels) {
    if (!units.empty()) units += "\n";
    units += WriteUnit(MakeKernelSpec(schedule, kernel));
  }
  return units;
}

// The units of a plan, one after another.
std::string UnitsOf(std::string_view text) {
  const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
  return UnitsOf(MakeSchedules(plan, {"sm_90a", 132}, Room::kPlain).front());
}

void ExpectGolden(const std::string& name, const std::string& units) {
  const std::string path = fmt::format("{}/{}.cu", KILN_GOLDENS, name);
  if (update_goldens) {
    std::ofstream(path, std::ios::binary) << units;
    return;
  }
  std::ostringstream golden;
  golden << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(units, golden.str()) << path;
}

TEST(SpecializeTest, GroupNormChain) {
  ExpectGolden("group_norm", UnitsOf(R"(
input x: f32[112,64,512,512]
param w: f32[64]
param b: f32[64]
y = group_norm(x, w, b, num_groups=8)
output y
)"));
}

TEST(SpecializeTest, ConvChainWithResidualAndLogSumExp) {
  ExpectGolden("conv_chain", UnitsOf(R"(
input x: f32[128,8,128,128]
param w: f32[64,8,3,3]
param b: f32[64]
param gw: f32[64]
param gb: f32[64]
y = conv2d(x, w, b)
z = group_norm(y, gw, gb, num_groups=16)
t = tanh(z)
h = hardswish(t)
s = add(y, h)
l = logsumexp(s, dim=1, keepdim=true)
output l
)"));
}

TEST(SpecializeTest, SeveralReductionsOfTheSameRows) {
  for (const auto& [name, length] :
       {std::pair("row_chain", 20000), std::pair("row_warp_chain", 1024)}) {
    const CanonicalPlan plan =
        *Canonicalize(*ParsePlanText(fmt::format(R"(
input x: bf16[8192,{0}]
param w: bf16[{0}]
m = mean(x, dim=1, keepdim=true)
d = sub(x, m)
q = mul(d, d)
v = mean(q, dim=1, keepdim=true)
e = add(v, 1e-5)
s = sqrt(e)
n = div(d, s)
y = mul(n, w)
output y
output m
)",
                                                 length)));
    ExpectGolden(name, UnitsOf(MakeSchedules(plan, {"sm_90a", 132}).front()));
  }
}

TEST(SpecializeTest, SplitReductionHasTwoEntries) {
  ExpectGolden("split_sum", UnitsOf(R"(
input x: bf16[1048576]
s = sum(x)
output s
)"));
}

TEST(SpecializeTest, BroadcastsCastsAndConstants) {
  ExpectGolden("pointwise", UnitsOf(R"(
input x: f16[2,3,4,5]
param c: bf16[3,1,1]
param w: f32[5]
a = add(x, c)
m = mul(a, w)
d = div(m, 3.0)
k = cast(d, dtype=f16)
l = leaky_relu(k, negative_slope=0.1)
output l
output k: f16
)"));
}

TEST(SpecializeTest, TensorsOfMoreThan2To31ElementsUse64BitPositions) {
  EXPECT_THAT(UnitsOf(R"(
input x: f16[8,1024,1024,1024]
r = relu(x)
output r: f16
)"),
              testing::HasSubstr("using Index = long long;"));
}

TEST(SpecializeTest, NoLineIsLongerThan80Columns) {
  std::istringstream lines(UnitsOf(R"(
input x: f16[32,64,56,56]
param w: bf16[64,64,3,3]
param b: bf16[64]
param g: f32[64]
y = conv2d(x, w, b, padding=1, stride=2, dilation=2)
z = group_norm(y, g, b, num_groups=16, eps=0.001)
p = avg_pool2d(z, kernel_size=3, stride=1, count_include_pad=false)
s = softmax(p, dim=1)
q = softplus(s, beta=0.1, threshold=3.3)
output q
)"));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(SpecializeTest, UnitsThatDifferInNamesAloneAreTheSame) {
  EXPECT_EQ(UnitIdentity("v3_mean = f(i0, v12); output1"),
            UnitIdentity("v4_mean = f(i7, v1); output0"));
  EXPECT_NE(UnitIdentity("f(i0, i1)"), UnitIdentity("f(i0, i0)"));
  EXPECT_NE(UnitIdentity("f(i0, 1)"), UnitIdentity("f(i0, 2)"));
  EXPECT_EQ(UnitIdentity("int i; init0 value1"), "int i; init0 value1");
}

TEST(FloatLiteralTest, ReadsBackExactly) {
  for (const float value :
       {0.0f, -0.0f, 1.0f, 0.1f, -1e-5f, 3.4028235e38f, 1e-45f, 6.1e-39f}) {
    const std::string literal = FloatLiteral(value);
    EXPECT_EQ(literal.back(), 'f');
    const float back = std::strtof(literal.c_str(), nullptr);
    EXPECT_EQ(back, value) << literal;
    EXPECT_EQ(std::signbit(back), std::signbit(value)) << literal;
  }
}

TEST(FloatLiteralTest, InfinitiesAndNanGoByTheirBits) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(FloatLiteral(infinity), "__int_as_float(0x7f800000)");
  EXPECT_EQ(FloatLiteral(-infinity), "__int_as_float(0xff800000)");
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--update_goldens") {
      kiln::update_goldens = true;
    }
  }
  return RUN_ALL_TESTS();
}
