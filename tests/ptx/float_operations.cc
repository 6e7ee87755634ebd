// Arithmetic of f32 (PTX ISA, section "Floating Point Instructions").
// Approximations are the host's functions, which are more exact.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/ptx/lanes.h"

namespace kiln::ptx {
namespace {

// What an operation makes of NaNs.
float CanonicalNan() { return std::bit_cast<float>(0x7fffffff); }

float Flushed(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.f, x)
                                                         : x;
}

struct Add {
  static float Apply(float a, float b) { return a + b; }
};
struct Subtract {
  static float Apply(float a, float b) { return a - b; }
};
struct Multiply {
  static float Apply(float a, float b) { return a * b; }
};
struct MultiplyAdd {
  static float Apply(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
  }
};

// The same rounded towards minus infinity. The product is exact in double, and
// so is what its sum with c leaves out.
struct MultiplyAddDown {
  static float Apply(float a, float b, float c) {
    const double product = static_cast<double>(a) * b;
    const double sum = product + c;
    const double part = sum - product;
    const double rest = (product - (sum - part)) + (c - part);
    const auto rounded = static_cast<float>(sum);
    const bool is_above = rounded > sum || (rounded == sum && rest < 0);
    return is_above ? std::nextafterf(rounded, -HUGE_VALF) : rounded;
  }
};

// What two equal numbers have in common: of zeros, which alone may differ, the
// sign.
float CommonBits(float a, float b) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(a) &
                              std::bit_cast<uint32_t>(b));
}
float AllBits(float a, float b) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(a) |
                              std::bit_cast<uint32_t>(b));
}

// Of a number and a NaN the number, and -0 is less than 0. Without branches, so
// that lanes are vectors.
struct Minimum {
  static float Apply(float a, float b) {
    float least = a < b ? a : b;
    least = b != b ? a : least;
    least = a == b ? AllBits(a, b) : least;
    return least != least ? CanonicalNan() : least;
  }
};
struct Maximum {
  static float Apply(float a, float b) {
    float largest = a > b ? a : b;
    largest = b != b ? a : largest;
    largest = a == b ? CommonBits(a, b) : largest;
    return largest != largest ? CanonicalNan() : largest;
  }
};
struct MinimumOrNan {
  static float Apply(float a, float b) {
    return a != a || b != b ? CanonicalNan() : Minimum::Apply(a, b);
  }
};
struct MaximumOrNan {
  static float Apply(float a, float b) {
    return a != a || b != b ? CanonicalNan() : Maximum::Apply(a, b);
  }
};

struct Absolute {
  static float Apply(float a) { return std::abs(a); }
};
struct Negate {
  static float Apply(float a) { return -a; }
};
// The sign of the first, the magnitude of the second.
struct CopySign {
  static float Apply(float a, float b) { return std::copysign(b, a); }
};

struct Divide {
  static float Apply(float a, float b) { return a / b; }
};
// Divisors beyond 2^126 give zero, or NaN for an infinite dividend.
struct DivideApproximately {
  static float Apply(float a, float b) {
    if (std::abs(b) > 0x1p126f && std::isfinite(b)) {
      return std::isinf(a) ? CanonicalNan() : a * 0.f;
    }
    return a / b;
  }
};
struct Reciprocal {
  static float Apply(float a) { return 1 / a; }
};
struct ReciprocalFlushed {
  static float Apply(float a) { return Flushed(1 / Flushed(a)); }
};
struct SquareRoot {
  static float Apply(float a) { return std::sqrt(a); }
};
struct ReciprocalSquareRoot {
  static float Apply(float a) {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(a)));
  }
};
struct Exp2 {
  static float Apply(float a) { return std::exp2(a); }
};
struct Exp2Flushed {
  static float Apply(float a) { return Flushed(std::exp2(Flushed(a))); }
};
struct Log2 {
  static float Apply(float a) { return std::log2(a); }
};
struct Log2Flushed {
  static float Apply(float a) { return std::log2(Flushed(a)); }
};
struct Sine {
  static float Apply(float a) { return std::sin(a); }
};
struct Cosine {
  static float Apply(float a) { return std::cos(a); }
};
struct Tanh {
  static float Apply(float a) { return std::tanh(a); }
};

}  // namespace

void AddFloatOperations(OperationTable* table) {
  OperationTable& t = *table;
  for (const char* rounding : {"", "rn."}) {
    const std::string type = std::string(rounding) + "f32";
    t["add." + type] = BinaryOperation<float, Add>();
    t["sub." + type] = BinaryOperation<float, Subtract>();
    t["mul." + type] = BinaryOperation<float, Multiply>();
  }
  t["fma.rn.f32"] = {Ternary<float, float, float, float, MultiplyAdd>, "wwww"};
  t["fma.rm.f32"] = {Ternary<float, float, float, float, MultiplyAddDown>,
                     "wwww"};
  t["min.f32"] = BinaryOperation<float, Minimum>();
  t["max.f32"] = BinaryOperation<float, Maximum>();
  t["min.NaN.f32"] = BinaryOperation<float, MinimumOrNan>();
  t["max.NaN.f32"] = BinaryOperation<float, MaximumOrNan>();
  t["abs.f32"] = UnaryOperation<float, Absolute>();
  t["neg.f32"] = UnaryOperation<float, Negate>();
  t["copysign.f32"] = BinaryOperation<float, CopySign>();
  t["div.rn.f32"] = BinaryOperation<float, Divide>();
  t["div.full.f32"] = BinaryOperation<float, Divide>();
  t["div.approx.f32"] = BinaryOperation<float, DivideApproximately>();
  t["rcp.rn.f32"] = UnaryOperation<float, Reciprocal>();
  t["rcp.approx.f32"] = UnaryOperation<float, Reciprocal>();
  t["rcp.approx.ftz.f32"] = UnaryOperation<float, ReciprocalFlushed>();
  t["sqrt.rn.f32"] = UnaryOperation<float, SquareRoot>();
  t["sqrt.approx.f32"] = UnaryOperation<float, SquareRoot>();
  t["rsqrt.approx.f32"] = UnaryOperation<float, ReciprocalSquareRoot>();
  t["ex2.approx.f32"] = UnaryOperation<float, Exp2>();
  t["ex2.approx.ftz.f32"] = UnaryOperation<float, Exp2Flushed>();
  t["lg2.approx.f32"] = UnaryOperation<float, Log2>();
  t["lg2.approx.ftz.f32"] = UnaryOperation<float, Log2Flushed>();
  t["sin.approx.f32"] = UnaryOperation<float, Sine>();
  t["cos.approx.f32"] = UnaryOperation<float, Cosine>();
  t["tanh.approx.f32"] = UnaryOperation<float, Tanh>();
}

}  // namespace kiln::ptx
