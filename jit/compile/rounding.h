#ifndef KILN_JIT_COMPILE_ROUNDING_H_
#define KILN_JIT_COMPILE_ROUNDING_H_

#include <cstdint>

namespace kiln {

// a / b rounded up, and a rounded up to a multiple of b; for a >= 0, b > 0.
// One is what b is mostly, and costs no division.
constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return b == 1 ? a : (a + b - 1) / b;
}
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROUNDING_H_
