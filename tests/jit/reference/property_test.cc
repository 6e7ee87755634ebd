// What the ops must satisfy whatever the numbers: laws that no table of
// expected values states.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tests/jit/reference/evaluate.h"

namespace kiln {
namespace {

double Dot(const Values& a, const Values& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += a[i] * b[i];
  return sum;
}

// <conv(x), y> = <x, conv_transpose(y)> with the same weight, for every
// combination of attributes.
TEST(ConvPropertyTest, ConvTransposeIsTheAdjointOfConv) {
  struct Case {
    const char* attributes;
    int groups, height, width, kernel_height, kernel_width;
    int out_height, out_width, extra_height, extra_width;
  };
  const Case cases[] = {
      {"stride=1", 1, 6, 5, 3, 2, 4, 4, 0, 0},
      {"stride=2, padding=1", 2, 8, 7, 3, 3, 4, 4, 1, 0},
      {"stride=[3,2], padding=[2,1], dilation=[2,3]", 2, 11, 10, 3, 2, 4, 5, 1,
       0},
      {"dilation=3", 4, 9, 8, 2, 3, 6, 2, 0, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.attributes);
    const std::string input = fmt::format("f32[2,4,{},{}]", c.height, c.width);
    const std::string output =
        fmt::format("f32[2,8,{},{}]", c.out_height, c.out_width);
    const std::string weight = fmt::format("f32[8,{},{},{}]", 4 / c.groups,
                                           c.kernel_height, c.kernel_width);
    const Values x = RandomValues(8 * c.height * c.width, 1);
    const Values y = RandomValues(16 * c.out_height * c.out_width, 2);
    const Values w =
        RandomValues(8 * 4 / c.groups * c.kernel_height * c.kernel_width, 3);
    const Values forward =
        Evaluate(fmt::format("input x: {}\nparam w: {}\ny = conv2d(x, w, {}, "
                             "groups={})\noutput y\n",
                             input, weight, c.attributes, c.groups),
                 {x, w});
    const Values backward = Evaluate(
        fmt::format("input x: {}\nparam w: {}\ny = conv_transpose2d(x, w, {}, "
                    "groups={}, output_padding=[{},{}])\noutput y\n",
                    output, weight, c.attributes, c.groups, c.extra_height,
                    c.extra_width),
        {y, w});
    // Both sums have some 2,000 terms of size 1 in double.
    EXPECT_NEAR(Dot(forward, y), Dot(x, backward), 1e-10);
  }
}

TEST(ConvPropertyTest, OneTapOfOneIsACopyOfThatPlace) {
  Values x(2 * 3 * 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
  const Values w = {0, 0, 0, 0, 0, 0, 0, 0, 1,  // output 0: channel 0
                    0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(Evaluate("input x: f32[1,2,3,3]\nparam w: f32[1,2,3,3]\n"
                     "y = conv2d(x, w, padding=1)\noutput y\n",
                     {x, w}),
            (Values{4, 5, 0, 7, 8, 0, 0, 0, 0}));
}

TEST(ConvPropertyTest, InfiniteWeightDoesNotSpoilBordersItDoesNotSee) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Evaluate("input x: f32[1,1,1,2]\nparam w: f32[1,1,1,3]\n"
                     "y = conv2d(x, w, padding=[0,1])\noutput y\n",
                     {{1, 2}, {inf, 1, 1}}),
            (Values{3, inf}));
}

TEST(NormPropertyTest, GroupNormHasMeanZeroAndVarianceOne) {
  for (double mean : {0.0, 3000.0}) {
    Values x = RandomValues(3 * 6 * 40, 7);
    for (double& v : x) v += mean;
    const Values y = Evaluate(
        "input x: f32[3,6,5,8]\ny = group_norm(x, num_groups=2, eps=0)\n"
        "output y\n",
        {x});
    for (size_t begin = 0; begin < y.size(); begin += 120) {
      double sum = 0.0;
      double squares = 0.0;
      for (size_t i = begin; i < begin + 120; ++i) {
        sum += y[i];
        squares += y[i] * y[i];
      }
      // x is exact to 2^-53 of the mean, 3000 times the spread, a group of 120.
      EXPECT_NEAR(sum, 0.0, 120 * 3000 * 0x1p-52);
      EXPECT_NEAR(squares / 120, 1.0, 3000 * 0x1p-52);
    }
  }
}

TEST(NormPropertyTest, BatchNormWithItsOwnStatisticsIsGroupNormPerChannel) {
  const Values x = {1, 2, 3, 4, -1, -1, 1, 1};
  const Values batch = Evaluate(
      "input x: f32[1,2,2,2]\nparam m: f32[2]\nparam v: f32[2]\n"
      "y = batch_norm(x, m, v)\noutput y\n",
      {x, {2.5, 0}, {1.25, 1}});
  const Values group = Evaluate(
      "input x: f32[1,2,2,2]\ny = group_norm(x, num_groups=2)\noutput y\n",
      {x});
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(batch[i], group[i], 1e-15);
}

TEST(ReducePropertyTest, LogSumExpMovesWithItsInput) {
  const Values x = RandomValues(24, 11);
  const std::string plan =
      "input x: f32[4,6]\ny = logsumexp(x, dim=1)\noutput y\n";
  const Values y = Evaluate(plan, {x});
  for (double shift : {-1e5, 4096.0}) {
    Values moved = x;
    // The shifted input is an f32 below 2^17, rounded by up to 2^-8.
    for (double& v : moved) v += shift;
    const Values z = Evaluate(plan, {moved});
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(z[i] - shift, y[i], 0x1p-6);
    }
  }
}

TEST(ReducePropertyTest, SoftmaxIsExpOfXMinusLogSumExpAndSumsToOne) {
  const auto out = EvaluateAll(
      "input x: f32[3,5,4]\ns = softmax(x, dim=1)\n"
      "l = logsumexp(x, dim=1, keepdim=true)\nd = sub(x, l)\ne = exp(d)\n"
      "t = sum(s, dim=1)\noutput s\noutput e\noutput t\n",
      {RandomValues(60, 5)});
  ASSERT_EQ(out.size(), 3u);
  for (size_t i = 0; i < out[0].size(); ++i) {
    EXPECT_NEAR(out[0][i], out[1][i], 1e-15);
  }
  for (double total : out[2]) EXPECT_NEAR(total, 1.0, 1e-15);
}

TEST(ReducePropertyTest, ReducingInTwoStepsIsReducingAtOnce) {
  const Values x = RandomValues(2 * 3 * 4 * 5, 9);
  for (const char* op : {"sum", "amax", "amin", "logsumexp", "mean"}) {
    const Values once = Evaluate(
        fmt::format("input x: f32[2,3,4,5]\ny = {}(x, dim=[1,3])\noutput y\n",
                    op),
        {x});
    const Values twice =
        Evaluate(fmt::format("input x: f32[2,3,4,5]\na = {0}(x, dim=-1)\n"
                             "y = {0}(a, dim=1)\noutput y\n",
                             op),
                 {x});
    ASSERT_EQ(once.size(), twice.size()) << op;
    for (size_t i = 0; i < once.size(); ++i) {
      EXPECT_NEAR(once[i], twice[i], 1e-13) << op;
    }
  }
}

// Every window, element by element, from the definition: no clipping of
// ranges, no early exits.
Values BruteForcePool(bool max, const Values& x, int extent, int out, int k,
                      int stride, int padding, int dilation, bool include) {
  Values result;
  for (int i = 0; i < out * out; ++i) {
    double best = -std::numeric_limits<double>::infinity();
    double sum = 0.0;
    int inside = 0;
    int padded = 0;
    for (int tap = 0; tap < k * k; ++tap) {
      const int y = i / out * stride - padding + tap / k * dilation;
      const int z = i % out * stride - padding + tap % k * dilation;
      if (std::max(y, z) >= extent + padding) continue;
      ++padded;
      if (std::min(y, z) < 0 || std::max(y, z) >= extent) continue;
      ++inside;
      best = std::max(best, x[y * extent + z]);
      sum += x[y * extent + z];
    }
    result.push_back(max ? best : sum / (include ? padded : inside));
  }
  return result;
}

TEST(PoolPropertyTest, EveryWindowMatchesBruteForce) {
  int cases = 0;
  for (int id = 0; id < 6 * 3 * 3 * 3 * 2 * 2 * 2; ++id) {
    const int extent = 4 + id % 6, k = 1 + id / 6 % 3, stride = 1 + id / 18 % 3;
    const int dilation = 1 + id / 54 % 3, padding = id / 162 % 2;
    const bool ceil = id / 324 % 2 != 0, max = id / 648 % 2 != 0;
    const int room = extent + 2 * padding - dilation * (k - 1) - 1;
    if (padding > k / 2 || room < 0 || (!max && dilation > 1)) continue;
    int out = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (out - 1) * stride >= extent + padding) --out;
    const Values x = RandomValues(extent * extent, id);
    for (const bool include : {true, false}) {
      if (max && !include) continue;
      const std::string own =
          max ? fmt::format("dilation={}", dilation)
              : fmt::format("count_include_pad={}", include);
      const std::string plan = fmt::format(
          "input x: f32[1,1,{0},{0}]\ny = {1}(x, kernel_size={2}, stride={3}, "
          "padding={4}, ceil_mode={5}, {6})\noutput y\n",
          extent, max ? "max_pool2d" : "avg_pool2d", k, stride, padding, ceil,
          own);
      const Values expected = BruteForcePool(max, x, extent, out, k, stride,
                                             padding, dilation, include);
      const Values actual = Evaluate(plan, {x});
      ASSERT_EQ(actual.size(), expected.size()) << plan;
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], 1e-14) << plan;
      }
      ++cases;
    }
  }
  EXPECT_GT(cases, 300);
}

TEST(PoolPropertyTest, HugeWindowsVisitTheInputOnly) {
  EXPECT_EQ(Evaluate("input x: f32[1,1,1,1]\n"
                     "y = max_pool2d(x, kernel_size=2147483647, stride=1, "
                     "padding=1073741823)\noutput y\n",
                     {{5}}),
            Values{5});
}

}  // namespace
}  // namespace kiln
