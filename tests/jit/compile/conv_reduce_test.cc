// The logsumexp of kernel_sources/conv_reduce.cuh against double: of values
// that four lanes have, in the plain way and in that for extremes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/jit/compile/host/host_cuda.h"
#include "tests/jit/compile/host/special_functions.cuh"
// Behind the two above, which stand in for what it needs of CUDA.
#include "kernel_sources/conv_reduce.cuh"

namespace kiln {
namespace {

constexpr int kLanes = 4;
constexpr int kCount = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLog2E = 0x1.715476p+0f;

using Values = std::array<float, kLanes * kCount>;

Values ValuesOf(const std::function<double(int)>& value) {
  Values values;
  for (int i = 0; i < kLanes * kCount; ++i) {
    values[i] = static_cast<float>(value(i));
  }
  return values;
}

// As a kernel computes it: by lanes that share a pixel. All get the same.
float LogSumExpOf(const Values& values) {
  blockDim.x = kLanes;
  std::array<float, kLanes> results;
  HostRunBlock(kLanes, [&] {
    const auto lane = static_cast<int>(threadIdx.x);
    float x[1][kCount];
    for (int i = 0; i < kCount; ++i) {
      x[0][i] = values[lane * kCount + i] * kLog2E;
    }
    LogSumExp states[1];
    ReduceRows(states, x);
    results[lane] = states[0].Value(kLanes * kCount);
  });
  for (const float result : results) {
    EXPECT_TRUE(result == results[0] || std::isnan(result));
  }
  return results[0];
}

double Expected(const Values& values) {
  double largest = values[0];
  for (const float x : values) largest = std::max(largest, double{x});
  double sum = 0;
  for (const float x : values) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

TEST(ConvReduceTest, LogSumExpIsRightAroundZeroAndFarFromIt) {
  for (const double offset : {0.0, 3.5, -4.2, 30.0, -30.0, 43.0, -60.0, 60.0,
                              100.0, -100.0, 5e3, -5e3, 1e30}) {
    for (const double spread : {0.0, 0.01, 1.0, 40.0, 1e4}) {
      const Values values =
          ValuesOf([&](int i) { return offset + spread * std::sin(37.0 * i); });
      const double expected = Expected(values);
      double most = 1.0;
      for (const float x : values) {
        if (x > expected - 20) most = std::max(most, std::fabs(double{x}));
      }
      EXPECT_NEAR(LogSumExpOf(values), expected, 4e-7 * most)
          << offset << " " << spread;
    }
  }
}

TEST(ConvReduceTest, LogSumExpOfSpecialValues) {
  const auto with = [](float special, double rest) {
    return LogSumExpOf(
        ValuesOf([&](int i) { return i == 21 ? special : rest; }));
  };
  EXPECT_EQ(with(kInfinity, 1.0), kInfinity);
  EXPECT_EQ(with(kInfinity, -kInfinity), kInfinity);
  EXPECT_NEAR(with(-kInfinity, 1.0), 1.0 + std::log(63.0), 1e-6);
  EXPECT_EQ(with(-kInfinity, -kInfinity), -kInfinity);
  EXPECT_NEAR(with(1.0f, -kInfinity), 1.0, 4e-7);
  EXPECT_TRUE(std::isnan(with(NAN, 1.0)));
  EXPECT_TRUE(std::isnan(with(NAN, kInfinity)));
}

}  // namespace
}  // namespace kiln
