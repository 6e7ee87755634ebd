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
uint16_t HalfOf(float value);
uint16_t BFloat16Of(float value);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_HALF_H_
