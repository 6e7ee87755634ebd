#ifndef KILN_TESTS_PTX_HALF_H_
#define KILN_TESTS_PTX_HALF_H_

#include <bit>
#include <cstdint>

namespace kiln::ptx {

// Bits of f16 and bf16. To them it is rounded to the nearest, ties to even,
// and a NaN becomes 0x7fff.
inline float FloatOfHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(bits & 0x7fff) << 13;
  constexpr uint32_t kInfinity = 0x1f << 23;
  // Multiplying by 2^112 moves the exponent, denormals included.
  const float moved = std::bit_cast<float>(rest) * 0x1p112f;
  const uint32_t magnitude = rest > kInfinity ? 0x7fc00000
                             : rest == kInfinity
                                 ? 0x7f800000
                                 : std::bit_cast<uint32_t>(moved);
  return std::bit_cast<float>(sign | magnitude);
}
inline float FloatOfBFloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Without branches, so that lanes are converted by vectors.
inline uint16_t HalfOf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  // Denormals: adding 0.5 rounds to multiples of 2^-24.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t denormal =
      std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  uint32_t half = (rounded - 0x38000000) >> 13;
  half = magnitude < 0x38800000 ? denormal : half;
  // From halfway between the largest finite value and the next.
  half = magnitude >= 0x477ff000 ? 0x7c00 : half;
  half |= sign;
  return static_cast<uint16_t>(magnitude > 0x7f800000 ? 0x7fff : half);
}
inline uint16_t BFloat16Of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(value != value ? 0x7fff : rounded);
}

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_HALF_H_
