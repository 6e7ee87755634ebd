#ifndef KILN_TESTS_PTX_HALF_H_
#define KILN_TESTS_PTX_HALF_H_

#include <cstdint>

namespace kiln::ptx {

// Bits of f16 and bf16. To them it is rounded to the nearest, ties to even,
// and a NaN becomes 0x7fff.
float FloatOfHalf(uint16_t bits);
float FloatOfBFloat16(uint16_t bits);
uint16_t HalfOf(float value);
uint16_t BFloat16Of(float value);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_HALF_H_
