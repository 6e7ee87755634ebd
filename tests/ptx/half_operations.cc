// Arithmetic of pairs of f16 (PTX ISA, section "Half Precision Floating Point
// Instructions"). Each half is rounded once.
#include <bit>
#include <cmath>
#include <cstdint>

#include "tests/ptx/half.h"
#include "tests/ptx/lanes.h"

namespace kiln::ptx {
namespace {

// f32 has more than twice the bits of f16 and two more: what is rounded to it
// and then to f16 is as if it were rounded once.
struct Subtract {
  static uint16_t Apply(uint16_t a, uint16_t b) {
    return HalfOf(FloatOfHalf(a) - FloatOfHalf(b));
  }
};

// The sum with a product may need more bits, and must not be rounded twice. The
// product is exact in f32, and so is what the sum leaves out: if that is not 0,
// the last bit is made odd, and the sum is not halfway between numbers of f16.
struct MultiplyAdd {
  static uint16_t Apply(uint16_t a, uint16_t b, uint16_t c) {
    const float product = FloatOfHalf(a) * FloatOfHalf(b);
    const float addend = FloatOfHalf(c);
    const float sum = product + addend;
    if (!std::isfinite(sum)) return HalfOf(sum);
    const float part = sum - product;
    const float rest = (product - (sum - part)) + (addend - part);
    auto bits = std::bit_cast<uint32_t>(sum);
    if (rest != 0 && bits % 2 == 0) bits += (rest > 0) == (sum > 0) ? 1 : -1;
    return HalfOf(std::bit_cast<float>(bits));
  }
};

template <typename Function>
struct OfBoth {
  template <typename... Words>
  static uint32_t Apply(Words... words) {
    const uint32_t upper =
        Function::Apply(static_cast<uint16_t>(words >> 16)...);
    return upper << 16 | Function::Apply(static_cast<uint16_t>(words)...);
  }
};

}  // namespace

void AddHalfOperations(OperationTable* table) {
  OperationTable& t = *table;
  t["sub.f16x2"] = BinaryOperation<uint32_t, OfBoth<Subtract>>();
  t["fma.rn.f16x2"] = {
      Ternary<uint32_t, uint32_t, uint32_t, uint32_t, OfBoth<MultiplyAdd>>,
      "wwww"};
}

}  // namespace kiln::ptx
