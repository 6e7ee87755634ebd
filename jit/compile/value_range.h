#ifndef KILN_JIT_COMPILE_VALUE_RANGE_H_
#define KILN_JIT_COMPILE_VALUE_RANGE_H_

#include <limits>
#include <string>

namespace kiln {

// The numbers that an f32 value can be, both ends included; by default all.
// NaN stands apart: whatever its range, a value may be NaN. Zeros have signs
// and -0 lies below +0, so {+0, 1} says that the value is never -0.
struct ValueRange {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// Whether a < b where -0 < +0. Neither is NaN.
bool IsBelow(float a, float b);

bool IsNonNegative(const ValueRange& x);  // nor -0
bool IsNonPositive(const ValueRange& x);  // nor +0
bool IsEverything(const ValueRange& x);
bool IsWithin(const ValueRange& x, float low, float high);

// Whether max(x, bound), or min(x, bound), is x whatever number x is, to the
// sign of zeros, whichever of two zeros the target's maximum answers.
bool IsNeverBelow(const ValueRange& x, float bound);
bool IsNeverAbove(const ValueRange& x, float bound);

// The floats next to `low` and `high` that lie outside of them or on them.
ValueRange Outward(double low, double high);

// The same, moved outward by 2^-20 of each: for functions that err by a few
// units in the last place, some of which flush denormals.
ValueRange Around(double low, double high);

// The least range with both in it.
ValueRange Hull(const ValueRange& a, const ValueRange& b);

// `x` without what lies outside of `low` and `high`; they overlap.
ValueRange Clipped(const ValueRange& x, float low, float high);

// Of x + y, x * y and so on as f32 rounds them. A product's range holds the
// exact product too, because the compiler may contract it with a sum behind.
ValueRange SumOf(const ValueRange& x, const ValueRange& y);
ValueRange ProductOf(const ValueRange& x, const ValueRange& y);
ValueRange QuotientOf(const ValueRange& x, const ValueRange& y);
ValueRange NegativeOf(const ValueRange& x);
ValueRange AbsoluteOf(const ValueRange& x);
ValueRange LargerOf(const ValueRange& x, const ValueRange& y);
ValueRange SmallerOf(const ValueRange& x, const ValueRange& y);

// "[-1, 1]", "[0, inf]"
std::string ToText(const ValueRange& x);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_VALUE_RANGE_H_
