// The functions of kernel_sources/math.cuh against double, for floats of every
// exponent and both signs, over special functions that err as the hardware
// may. A row of the table is a function, its definition and its largest error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "fmt/format.h"
#include "tests/jit/compile/host/host_cuda.h"
#include "tests/jit/compile/host/special_functions.cuh"
// Behind the two above, which stand in for what it needs of CUDA.
#include "kernel_sources/math.cuh"

namespace kiln {
namespace {

// Of the bits of consecutive samples: a prime, so that low bits vary.
constexpr uint32_t kSampleStep = 4999;

struct Function {
  const char* name;
  float (*function)(float);
  double (*reference)(double);
  double max_ulp;             // of errors relative to the result
  double max_scaled_error;    // of errors relative to max(1, |x|)
  double lowest = -INFINITY;  // arguments
  double highest = INFINITY;
};

// The distance between floats around `value`.
double UlpAt(double value) {
  const int exponent = std::ilogb(std::max(std::fabs(value), 0x1p-126));
  return std::ldexp(1.0, std::min(exponent, 127) - 23);
}

double Sigmoid64(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double SoftplusOf(double x) {
  return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}
double MishOf(double x) {
  if (x > 20) return x;
  return x * std::tanh(std::log1p(std::exp(x)));
}
double HardsigmoidOf(double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }
double HardswishOf(double x) { return x * HardsigmoidOf(x); }
double HardswishOfTanh64(double x) { return HardswishOf(std::tanh(x)); }
// Of arguments that have been scaled in double, as constants are.
float Scaled(float x) { return static_cast<float>(x * (2 / M_LN2)); }
constexpr float kFactor = 0x1.715476p+0f;
double GeluErf(double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double GeluByTanh(double x) {
  const double cubic = x + double{0.044715f} * x * x * x;
  return x * Sigmoid64(2 * std::sqrt(2 / M_PI) * cubic);
}

const Function kFunctions[] = {
    {"exp", Exp, std::exp, 2.5, INFINITY},
    {"exp_small", Exp<Reach::kSmall>, std::exp, 2.5, INFINITY, -1, 1},
    {"exp_bounded", Exp<Reach::kBounded>, std::exp, 2.5, INFINITY, -80, 80},
    {"tanh", Tanh, std::tanh, 3.0, 1.5e-7},
    {"tanh_small", TanhOfSmall, std::tanh, 1.5, 1.5e-7, -0.599, 0.599},
    {"tanh_beside_1", TanhBesideOne, std::tanh, INFINITY, 3.2e-7},
    {"tanh_less_1", [](float x) { return TanhLessOne(Scaled(x), kFactor); },
     [](double x) { return kFactor * (std::tanh(x) - 1); }, INFINITY, 5.1e-7},
    {"hardswish_tanh", [](float x) { return HardswishOfTanh(Scaled(x)); },
     HardswishOfTanh64, INFINITY, 2e-7},
    {"hardswish_less",
     [](float x) { return HardswishOfTanhLess(Scaled(x), kFactor); },
     [](double x) { return kFactor * (HardswishOfTanh64(x) - 2.0 / 3); },
     INFINITY, 2.7e-7},
    {"sigmoid", Sigmoid, Sigmoid64, 5.0, 2e-7},
    {"sigmoid_small", Sigmoid<Reach::kSmall>, Sigmoid64, 4.5, 2e-7, -1, 1},
    {"hardsigmoid", Hardsigmoid, HardsigmoidOf, 1.5, 1e-7, -3},
    {"hardsigmoid_in", HardsigmoidInside, HardsigmoidOf, 1.5, 1e-7, -2, 3},
    {"hardswish", Hardswish, HardswishOf, 2.2, INFINITY, -3, 0x1p125},
    {"hardswish_in", HardswishInside, HardswishOf, 2.2, INFINITY, -2, 3},
    {"silu", Silu, [](double x) { return x * Sigmoid64(x); }, 5.5, 2e-7, -88.0},
    {"mish", Mish, MishOf, 6.5, 2e-7, -87.0},
    {"mish_small", Mish<Reach::kSmall>, MishOf, 6.5, 2e-7, -1, 1},
    {"silu_small", Silu<Reach::kSmall>,
     [](double x) { return x * Sigmoid64(x); }, 5.0, 2e-7, -1, 1},
    {"softplus", [](float x) { return Softplus(x, 1.0f, 20.0f); },
     [](double x) { return x > 20 ? x : SoftplusOf(x); }, 4.0, 2e-7},
    {"elu", [](float x) { return Elu(x, 1.0f); },
     [](double x) { return x > 0 ? x : std::expm1(x); }, 2.0, 1.2e-7},
    {"gelu", Gelu<>, GeluErf, 4.0, 2e-7, -1.0},
    {"gelu_left", Gelu<>, GeluErf, INFINITY, 1e-7, -INFINITY, -1.0},
    {"gelu_finite", Gelu<OfInfinity::kNaN>, GeluErf, 4.0, 2e-7, -1.0, FLT_MAX},
    {"gelu_half", GeluForHalf<>, GeluErf, 350, 4e-6, -2.8},
    {"gelu_half_left", GeluForHalf<>, GeluErf, INFINITY, 1e-7, -INFINITY, -2.8},
    {"gelu_half_finite", GeluForHalf<OfInfinity::kNaN>, GeluErf, 350, 4e-6,
     -2.8, FLT_MAX},
    {"gelu_tanh", GeluTanh, GeluByTanh, 5.0, 2e-7, -1.0},
    {"gelu_tanh_left", GeluTanh, GeluByTanh, INFINITY, 1e-7, -INFINITY, -1.0},
    {"tanh_half", TanhForHalf, [](double x) { return std::tanh(x); }, 128,
     INFINITY},
    {"exp_half", ExpForHalf, std::exp, 128, INFINITY},
    {"sigmoid_half", SigmoidForHalf, Sigmoid64, 128, 1e-6},
    {"silu_half", SiluForHalf, [](double x) { return x * Sigmoid64(x); }, 128,
     1e-6, -87.0},
    {"mish_half", MishForHalf, MishOf, 128, 1e-6, -87.0},
    {"log", Log, std::log, 2.0, INFINITY, 0x1p-126},
};

struct Errors {
  double ulp = 0, scaled = 0;
  float worst_ulp_at = 0, worst_scaled_at = 0;
};

// Whether the result is right where it is no number, or is beyond floats.
bool IsRightSpecial(float actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual);
  const float rounded = static_cast<float>(expected);
  return std::isinf(rounded) &&
         (actual == rounded || std::fabs(actual) >= 0x1.fffff0p127f);
}

Errors Measure(const Function& row) {
  Errors errors;
  const auto sample = [&](float x) {
    if (x < row.lowest || x > row.highest) return;
    const double expected = row.reference(x);
    const float actual = row.function(x);
    if (!std::isfinite(static_cast<float>(expected))) {
      EXPECT_TRUE(IsRightSpecial(actual, expected))
          << row.name << "(" << x << ") is " << actual;
      return;
    }
    const double error = std::fabs(actual - expected);
    // Results below the normal numbers may be zero.
    const double ulp = std::fabs(expected) < 0x1p-126 && error <= 0x1p-126
                           ? 0
                           : error / UlpAt(expected);
    const double scaled = error / std::max(1.0, double{std::fabs(x)});
    EXPECT_FALSE(std::isnan(error)) << row.name << "(" << x << ")";
    if (ulp > errors.ulp) errors.ulp = ulp, errors.worst_ulp_at = x;
    if (scaled > errors.scaled) {
      errors.scaled = scaled, errors.worst_scaled_at = x;
    }
  };
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kSampleStep) {
    sample(HostBitCast<float>(static_cast<uint32_t>(bits)));
  }
  for (double x = -110; x < 110; x += 0.00037) sample(static_cast<float>(x));
  return errors;
}

TEST(MathTest, FunctionsAreWithinTheirBounds) {
  for (const Function& row : kFunctions) {
    const Errors errors = Measure(row);
    fmt::print("{:15} {:8.3g} ulp at {:.6g}, {:.3g} scaled at {:.6g}\n",
               row.name, errors.ulp, errors.worst_ulp_at, errors.scaled,
               errors.worst_scaled_at);
    EXPECT_LE(errors.ulp, row.max_ulp) << row.name;
    EXPECT_LE(errors.scaled, row.max_scaled_error) << row.name;
  }
}

// What a norm leaves of an error is what neighbours do not share.
TEST(MathTest, ErrorsOfGeluForHalfAreAlikeBesideEachOther) {
  constexpr double kDistance = 0.03125;
  const auto error = [](double x) {
    return GeluForHalf(static_cast<float>(x)) - GeluErf(x);
  };
  for (double x = -16.0; x < 16.0; x += kDistance) {
    const double roundings = 0x1p-22 * std::max(1.0, std::fabs(x));
    EXPECT_LE(std::fabs(error(x + kDistance) - error(x)),
              2e-5 * kDistance + roundings)
        << x;
  }
}

TEST(MathTest, SpecialValuesAreThoseOfPyTorch) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Exp(infinity), infinity);
  EXPECT_EQ(Exp(-infinity), 0.0f);
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Tanh(infinity), 1.0f);
  EXPECT_EQ(Tanh(-infinity), -1.0f);
  EXPECT_TRUE(std::signbit(Tanh(-0.0f)));
  EXPECT_EQ(TanhBesideOne(infinity), 1.0f);
  EXPECT_EQ(TanhBesideOne(-infinity), -1.0f);
  EXPECT_EQ(TanhBesideOne(-0.0f), 0.0f);
  EXPECT_EQ(HardswishOfTanh(infinity), 2.0f / 3.0f);
  EXPECT_NEAR(HardswishOfTanh(-infinity), -1.0f / 3.0f, 0x1p-24f);
  EXPECT_EQ(Gelu(infinity), infinity);
  EXPECT_TRUE(std::isnan(Gelu(-infinity)));
  EXPECT_TRUE(std::isnan(Gelu<OfInfinity::kNaN>(infinity)));
  EXPECT_TRUE(std::isnan(Gelu<OfInfinity::kNaN>(-infinity)));
  EXPECT_EQ(GeluForHalf(infinity), infinity);
  EXPECT_TRUE(std::isnan(GeluForHalf(-infinity)));
  EXPECT_EQ(GeluTanh(infinity), infinity);
  EXPECT_TRUE(std::isnan(Silu(-infinity)));
  EXPECT_EQ(Silu(infinity), infinity);
  EXPECT_EQ(Mish(1e30f), 1e30f);
  EXPECT_EQ(Elu(-infinity, 2.0f), -2.0f);
  EXPECT_EQ(Softplus(-infinity, 1.0f, 20.0f), 0.0f);
  EXPECT_EQ(Log(0.0f), -infinity);
  EXPECT_EQ(Log(infinity), infinity);
  EXPECT_TRUE(std::isnan(Log(-1.0f)));
  for (const Function& row : kFunctions) {
    EXPECT_TRUE(std::isnan(row.function(NAN))) << row.name;
  }
}

TEST(MathTest, QuotientsAreThoseOfDivision) {
  for (const float divisor : {3.0f, 7.0f, 49.0f, 1000.0f, 1e10f, -0.1f}) {
    for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 100'003) {
      const float x = HostBitCast<float>(static_cast<uint32_t>(bits));
      const float exact = x / divisor;
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(QuotientByConstant(x, divisor)));
      } else if (std::fabs(exact) > 0x1p-100f) {
        EXPECT_EQ(QuotientByConstant(x, divisor), exact) << x;
      }
    }
  }
}

// Divisors of any size, whose reciprocals may be infinite or denormal; and each
// number over itself, which one multiplication would leave below one.
TEST(MathTest, DivByIsDivision) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {
      0.0f,      -0.0f,           1.0f,        3.0f,
      infinity,  -infinity,       0x1p-140f,   0x1.8p-127f,
      0x1p-101f, 0x1.fffffep127f, 0x1.234p126f};
  for (uint64_t bits = 1; bits < 0x7f800000; bits += 0x1f351d) {
    values.push_back(HostBitCast<float>(static_cast<uint32_t>(bits)));
  }
  for (const float b : values) {
    const Divisor divisor = DivisorOf(b);
    for (const float a : values) {
      const float exact = a / b;
      const float got = DivBy(a, divisor);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(got)) << a << " / " << b;
      } else if (std::isinf(exact) || std::fabs(exact) > 0x1p-100f) {
        // What the divisor's scale rounds, it rounds of denormals.
        if (std::fabs(a) > 0x1p-100f || a == 0.0f) {
          EXPECT_EQ(got, exact) << a << " / " << b;
        }
      } else {
        EXPECT_NEAR(got, exact, 0x1p-124f) << a << " / " << b;
      }
    }
    if (b > 0x1p-100f && b < infinity) {
      EXPECT_EQ(DivBy(b, divisor), 1.0f);
    }
  }
}

}  // namespace
}  // namespace kiln
