#include "jit/plan/reference_convert.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln {
namespace {

// IEEE 754 interchange formats of 16 bits (bf16 follows the same rules).
struct Half {
  static constexpr int kExponentBits = 5;
  static constexpr int kMantissaBits = 10;
};
struct Bfloat {
  static constexpr int kExponentBits = 8;
  static constexpr int kMantissaBits = 7;
};

constexpr int kDoubleMantissaBits = 52;
constexpr int kDoubleBias = 1023;

template <typename Format>
constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;

template <typename Format>
constexpr uint16_t kInfinity = static_cast<uint16_t>(
    ((1 << Format::kExponentBits) - 1) << Format::kMantissaBits);

template <typename Format>
uint16_t Encode(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>(bits >> 63 << 15);
  if (std::isnan(value)) {
    constexpr uint16_t kQuiet = 1 << (Format::kMantissaBits - 1);
    return sign | kInfinity<Format> | kQuiet;
  }
  constexpr uint64_t kHidden = uint64_t{1} << kDoubleMantissaBits;
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - kDoubleBias;
  if (exponent > kBias<Format>) return sign | kInfinity<Format>;

  // Denormals of the target lose one more bit per exponent below the least.
  constexpr int kMinExponent = 1 - kBias<Format>;
  const int shift = kDoubleMantissaBits - Format::kMantissaBits +
                    std::max(0, kMinExponent - exponent);
  // Below half of the smallest denormal.
  if (shift > kDoubleMantissaBits + 1) return sign;
  const uint64_t significand = (bits & (kHidden - 1)) | kHidden;
  const uint64_t odd = significand >> shift & 1;
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rounded = (significand + half - 1 + odd) >> shift;
  // The hidden bit of `rounded` adds one to the exponent field, and a carry
  // out of the mantissa one more: up to infinity, as it should.
  const uint64_t below = std::max(exponent, kMinExponent) - kMinExponent;
  return sign |
         static_cast<uint16_t>((below << Format::kMantissaBits) + rounded);
}

template <typename Format>
double Decode(uint16_t bits) {
  constexpr int kMantissaMask = (1 << Format::kMantissaBits) - 1;
  const uint64_t sign = uint64_t{bits} >> 15 << 63;
  const int magnitude = bits & 0x7fff;
  const uint64_t mantissa = magnitude & kMantissaMask;
  uint64_t exponent = magnitude >> Format::kMantissaBits;
  if (exponent == 0) {
    constexpr int kScale = 1 - kBias<Format> - Format::kMantissaBits;
    const double value = std::ldexp(static_cast<double>(mantissa), kScale);
    return sign != 0 ? -value : value;
  }
  exponent += kDoubleBias - kBias<Format>;
  if (magnitude >= kInfinity<Format>) exponent = 0x7ff;
  constexpr int kWiden = kDoubleMantissaBits - Format::kMantissaBits;
  return std::bit_cast<double>(sign | exponent << 52 | mantissa << kWiden);
}

}  // namespace

double RoundTo(DataType type, double value) {
  switch (type) {
    case DataType::kF32:
      return static_cast<double>(static_cast<float>(value));
    case DataType::kF16:
      return Decode<Half>(Encode<Half>(value));
    case DataType::kBF16:
      return Decode<Bfloat>(Encode<Bfloat>(value));
  }
  return value;
}

void ElementsToDouble(DataType type, const void* from, int64_t count,
                      double* to) {
  const auto* narrow = static_cast<const uint16_t*>(from);
  switch (type) {
    case DataType::kF32:
      std::copy_n(static_cast<const float*>(from), count, to);
      return;
    case DataType::kF16:
      std::transform(narrow, narrow + count, to, Decode<Half>);
      return;
    case DataType::kBF16:
      std::transform(narrow, narrow + count, to, Decode<Bfloat>);
      return;
  }
}

void ElementsFromDouble(DataType type, const double* from, int64_t count,
                        void* to) {
  auto* narrow = static_cast<uint16_t*>(to);
  switch (type) {
    case DataType::kF32:
      std::transform(from, from + count, static_cast<float*>(to),
                     [](double value) { return static_cast<float>(value); });
      return;
    case DataType::kF16:
      std::transform(from, from + count, narrow, Encode<Half>);
      return;
    case DataType::kBF16:
      std::transform(from, from + count, narrow, Encode<Bfloat>);
      return;
  }
}

}  // namespace kiln
