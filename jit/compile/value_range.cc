#include "jit/compile/value_range.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "fmt/format.h"

namespace kiln {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

float Lower(float a, float b) { return IsBelow(b, a) ? b : a; }
float Higher(float a, float b) { return IsBelow(a, b) ? b : a; }

bool AreSame(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

float FloatAtOrBelow(double x) {
  if (std::isinf(x)) return static_cast<float>(x);
  if (x > kLargest) return kLargest;
  if (x < -kLargest) return -kInfinity;
  const float nearest = static_cast<float>(x);
  return nearest > x ? std::nextafter(nearest, -kInfinity) : nearest;
}

float FloatAtOrAbove(double x) { return -FloatAtOrBelow(-x); }

// Infinity times zero is NaN, which has no place in a range; what is near it
// is a zero.
double Product(double x, double y) {
  const double product = x * y;
  if (!std::isnan(product)) return product;
  return std::signbit(x) == std::signbit(y) ? 0.0 : -0.0;
}

// x / y for y other than zero.
ValueRange QuotientByNumber(const ValueRange& x, float y) {
  const double a = double{x.low} / y;
  const double b = double{x.high} / y;
  if (std::isnan(a) || std::isnan(b)) return {};
  return y > 0 ? Outward(a, b) : Outward(b, a);
}

}  // namespace

bool IsBelow(float a, float b) {
  if (a == 0 && b == 0) return std::signbit(a) && !std::signbit(b);
  return a < b;
}

bool IsNonNegative(const ValueRange& x) { return !std::signbit(x.low); }
bool IsNonPositive(const ValueRange& x) { return std::signbit(x.high); }

bool IsEverything(const ValueRange& x) {
  return x.low == -kInfinity && x.high == kInfinity;
}
bool IsWithin(const ValueRange& x, float low, float high) {
  return x.low >= low && x.high <= high;
}

bool IsNeverBelow(const ValueRange& x, float bound) {
  if (bound != 0 || x.low != 0) return x.low >= bound;
  return AreSame(bound, 0.0f) && AreSame(x.low, 0.0f);
}

bool IsNeverAbove(const ValueRange& x, float bound) {
  if (bound != 0 || x.high != 0) return x.high <= bound;
  return AreSame(bound, -0.0f) && AreSame(x.high, -0.0f);
}

ValueRange Outward(double low, double high) {
  return {FloatAtOrBelow(low), FloatAtOrAbove(high)};
}

ValueRange Around(double low, double high) {
  ValueRange range = {-kInfinity, kInfinity};
  if (!std::isinf(low)) {
    range.low = FloatAtOrBelow(low - std::fabs(low) * 0x1p-20);
  } else if (low > 0) {
    range.low = kLargest;
  }
  if (!std::isinf(high)) {
    range.high = FloatAtOrAbove(high + std::fabs(high) * 0x1p-20);
  } else if (high < 0) {
    range.high = -kLargest;
  }
  if (range.low > 0 && range.low < 2 * kSmallestNormal) range.low = 0.0f;
  if (range.high < 0 && range.high > -2 * kSmallestNormal) range.high = -0.0f;
  return range;
}

ValueRange Hull(const ValueRange& a, const ValueRange& b) {
  return {Lower(a.low, b.low), Higher(a.high, b.high)};
}

ValueRange Clipped(const ValueRange& x, float low, float high) {
  return {Higher(x.low, low), Lower(x.high, high)};
}

ValueRange SumOf(const ValueRange& x, const ValueRange& y) {
  const double low = double{x.low} + y.low;
  const double high = double{x.high} + y.high;
  return Outward(std::isnan(low) ? -kInfinity : low,
                 std::isnan(high) ? kInfinity : high);
}

// For a fixed factor a product is monotone in the other, zeros with their
// signs included; so the ends are at corners.
ValueRange ProductOf(const ValueRange& x, const ValueRange& y) {
  ValueRange range = Outward(Product(x.low, y.low), Product(x.low, y.low));
  for (const float a : {x.low, x.high}) {
    for (const float b : {y.low, y.high}) {
      range = Hull(range, Outward(Product(a, b), Product(a, b)));
    }
  }
  return range;
}

ValueRange QuotientOf(const ValueRange& x, const ValueRange& y) {
  if (AreSame(y.low, y.high) && y.low != 0 && std::isfinite(y.low)) {
    return QuotientByNumber(x, y.low);
  }
  if (IsNonNegative(x) && IsNonNegative(y)) return {0.0f, kInfinity};
  return {};
}

ValueRange NegativeOf(const ValueRange& x) { return {-x.high, -x.low}; }

ValueRange AbsoluteOf(const ValueRange& x) {
  if (IsNonNegative(x)) return x;
  if (IsNonPositive(x)) return NegativeOf(x);
  return {0.0f, std::max(-x.low, x.high)};
}

// Of two zeros the targets answer the second (math.cuh before sm_80) or the
// larger.
ValueRange LargerOf(const ValueRange& x, const ValueRange& y) {
  ValueRange range = {Higher(x.low, y.low), Higher(x.high, y.high)};
  if (range.low == 0 && !IsNonNegative(y)) range.low = -0.0f;
  return range;
}

ValueRange SmallerOf(const ValueRange& x, const ValueRange& y) {
  ValueRange range = {Lower(x.low, y.low), Lower(x.high, y.high)};
  if (range.high == 0 && !IsNonPositive(y)) range.high = 0.0f;
  return range;
}

std::string ToText(const ValueRange& x) {
  return fmt::format("[{}, {}]", x.low, x.high);
}

}  // namespace kiln
