#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "jit/plan/reference_convert.h"

namespace kiln {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Decode(DataType type, uint16_t bits) {
  double value = 0.0;
  ElementsToDouble(type, &bits, 1, &value);
  return value;
}

uint16_t Encode(DataType type, double value) {
  uint16_t bits = 0;
  ElementsFromDouble(type, &value, 1, &bits);
  return bits;
}

struct Format {
  DataType type;
  uint16_t infinity;  // bits
  int mantissa_bits;
  int bias;
};

constexpr Format kFormats[] = {{DataType::kF16, 0x7c00, 10, 15},
                               {DataType::kBF16, 0x7f80, 7, 127}};

// The definition of IEEE 754, by arithmetic instead of bits.
double ByDefinition(const Format& format, uint16_t bits) {
  const int magnitude = bits & 0x7fff;
  const int field = magnitude >> format.mantissa_bits;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  const double fraction = std::ldexp(mantissa, -format.mantissa_bits);
  const double value = field == 0
                           ? std::ldexp(fraction, 1 - format.bias)
                           : std::ldexp(1.0 + fraction, field - format.bias);
  return bits >> 15 != 0 ? -value : value;
}

TEST(ConvertTest, All65536ValuesDecodeByDefinitionAndRoundTrip) {
  for (const Format& format : kFormats) {
    for (int i = 0; i < 65536; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      const double value = Decode(format.type, bits);
      const int magnitude = bits & 0x7fff;
      if (magnitude > format.infinity) {
        EXPECT_TRUE(std::isnan(value)) << i;
        EXPECT_GT(Encode(format.type, value) & 0x7fff, format.infinity) << i;
        continue;
      }
      if (magnitude == format.infinity) {
        EXPECT_EQ(value, bits >> 15 != 0 ? -kInfinity : kInfinity);
      } else {
        EXPECT_EQ(value, ByDefinition(format, bits)) << i;
      }
      EXPECT_EQ(Encode(format.type, value), bits) << i;
    }
  }
}

// Between every two neighbours: the middle goes to the even one, and the
// doubles next to the middle to the nearer one, which two roundings (by way of
// f32) would not do.
TEST(ConvertTest, EveryTieGoesToEvenAndNothingRoundsTwice) {
  for (const Format& format : kFormats) {
    for (uint16_t low = 0; low < format.infinity; ++low) {
      const uint16_t high = low + 1;
      const double a = Decode(format.type, low);
      // Rounding to infinity starts where the next value would have stood.
      const double b =
          high == format.infinity
              ? 2 * a - Decode(format.type, static_cast<uint16_t>(low - 1))
              : Decode(format.type, high);
      const double middle = a + (b - a) / 2;
      const uint16_t even = low % 2 == 0 ? low : high;
      ASSERT_EQ(Encode(format.type, middle), even) << low;
      ASSERT_EQ(Encode(format.type, -middle), even | 0x8000) << low;
      ASSERT_EQ(Encode(format.type, std::nextafter(middle, 0.0)), low) << low;
      ASSERT_EQ(Encode(format.type, std::nextafter(middle, kInfinity)), high)
          << low;
    }
  }
}

TEST(ConvertTest, ExtremesBecomeInfinityOrSignedZero) {
  for (const Format& format : kFormats) {
    EXPECT_EQ(Encode(format.type, 1e300), format.infinity);
    EXPECT_EQ(Encode(format.type, -1e300), format.infinity | 0x8000);
    EXPECT_EQ(Encode(format.type, kInfinity), format.infinity);
    EXPECT_EQ(Encode(format.type, 1e-300), 0);
    EXPECT_EQ(Encode(format.type, -1e-300), 0x8000);
    EXPECT_EQ(Encode(format.type, 5e-324), 0);
    EXPECT_EQ(Encode(format.type, -0.0), 0x8000);
  }
}

TEST(ConvertTest, F32RoundsAsTheHardwareDoes) {
  for (double value : {1.0 + 0x1p-24, 1.0 + 0x3p-24, 0x1p-150, 0x1.8p-149,
                       0x1.fffffefp127, 0x1.ffffffp127, -0.0, -kInfinity}) {
    float stored = 0.0f;
    ElementsFromDouble(DataType::kF32, &value, 1, &stored);
    EXPECT_EQ(std::bit_cast<uint32_t>(stored),
              std::bit_cast<uint32_t>(static_cast<float>(value)));
    EXPECT_EQ(RoundTo(DataType::kF32, value), static_cast<float>(value));
  }
}

TEST(ConvertTest, RoundToIsEncodeThenDecode) {
  for (const Format& format : kFormats) {
    for (double value : {0.1, -1.0 / 3.0, 12345.678, 1e-6, 65519.9, 7e4}) {
      EXPECT_EQ(RoundTo(format.type, value),
                Decode(format.type, Encode(format.type, value)));
    }
  }
}

}  // namespace
}  // namespace kiln
