// How large a convolution's results can be, for a scale that is chosen before
// any of them is known. Infinities and NaNs need no scale; but an infinity may
// have become a finite number since, by an op that limits it.
#ifndef KILN_KERNEL_SOURCES_RESULT_BOUNDS_CUH_
#define KILN_KERNEL_SOURCES_RESULT_BOUNDS_CUH_

#include "conv_halves.cuh"

namespace kiln {

constexpr float kLargestFinite = 0x1.fffffep+127f;

__device__ inline bool IsFinite(float x) {
  return MagnitudeBits(x) < kInfinityBits;
}
__device__ inline float ClampToFinite(float x) {
  return fminf(fmaxf(x, -kLargestFinite), kLargestFinite);
}

// No more than `slope` times the largest finite magnitude of the input's
// numbers at a pixel and `offset`, nor more than `cap`, which may be infinite.
struct BoundSide {
  float slope, offset, cap;

  // `is_special`: of a pixel with infinities or NaNs.
  __device__ float Of(float most, bool is_special) const {
    if (is_special && IsFinite(cap)) return cap;
    return fminf(fmaf(slope, most, offset), cap);
  }
  __device__ void Scale(float factor) {
    slope = ClampToFinite(slope * factor);
    offset = ClampToFinite(offset * factor);
    if (IsFinite(cap)) cap = ClampToFinite(cap * factor);
  }
  __device__ void Move(float x) {
    offset = ClampToFinite(offset + x);
    if (IsFinite(cap)) cap = ClampToFinite(cap + x);
  }
  // Of numbers that are no less than x.
  __device__ void Raise(float x) {
    offset = fmaxf(offset, x);
    cap = fmaxf(cap, x);
  }
  // Of numbers that may be the most that is let through.
  __device__ void Limit() {
    if (IsFinite(cap)) offset = cap;
  }
  // Of either's numbers.
  __device__ void Join(const BoundSide& other) {
    slope = fmaxf(slope, other.slope);
    offset = fmaxf(offset, other.offset);
    cap = fmaxf(cap, other.cap);
  }
};

// Of results and of their negatives. The members follow what ops make of
// results.
struct ResultBound {
  BoundSide up, down;
  bool is_special;  // whether infinities or NaNs have been met

  // Of sums of products with weights of so large magnitudes together.
  static __device__ ResultBound OfSums(float magnitudes, bool is_special) {
    const BoundSide side = {magnitudes, 0.0f, __uint_as_float(kInfinityBits)};
    return {side, side, is_special};
  }
  static __device__ ResultBound Within(float low, float high) {
    return {{0.0f, high, high}, {0.0f, -low, -low}, false};
  }

  // Of all magnitudes.
  __device__ float Of(float most, bool is_special) const {
    const float larger =
        fmaxf(up.Of(most, is_special), down.Of(most, is_special));
    return fminf(fmaxf(larger, 0.0f), kLargestFinite);
  }

  __device__ void Multiply(float x) {
    if (x < 0.0f) Negate();
    const float factor = fabsf(Known(x));
    up.Scale(factor);
    down.Scale(factor);
  }
  // Sums are rounded, which is seen where another number takes x away again.
  __device__ void Add(float x) {
    const float known = Known(x);
    const float rounding = fabsf(known) * 0x1p-22f;
    up.Move(known + rounding);
    down.Move(rounding - known);
  }
  __device__ void AtMost(float x) {
    up.cap = fminf(up.cap, x);
    down.Raise(-x);
  }
  __device__ void AtLeast(float x) {
    Negate();
    AtMost(-x);
    Negate();
  }
  // Of x * g(x) with g from 0 to 1 and the like: between 0 and x, where that is
  // more, and else no farther below 0 than `floor`.
  __device__ void Gate(float floor) {
    up.Raise(0.0f);
    down.Raise(0.0f);
    down.cap = fminf(down.cap, floor);
  }
  // Of x where it is more than 0, else of x times `factor`, 0 to 1.
  __device__ void Leak(float factor) {
    up.Raise(0.0f);
    down.Raise(0.0f);
    down.Scale(factor);
  }
  // Of what is no farther from 0 than `factor` times x.
  __device__ void Fold(float factor) {
    up.Join(down);
    up.Raise(0.0f);
    up.Scale(factor);
    down = up;
  }

  // With what a channel has been found to have.
  __device__ void Join(ResultBound channel) {
    if (channel.is_special) {
      channel.up.Limit();
      channel.down.Limit();
    }
    up.Join(channel.up);
    down.Join(channel.down);
  }

 private:
  __device__ float Known(float x) {
    is_special |= !IsFinite(x);
    return IsFinite(x) ? x : 0.0f;
  }
  __device__ void Negate() {
    const BoundSide side = up;
    up = down;
    down = side;
  }
};

// The exponent of a scale for numbers up to `bound`, which is finite: they are
// below 2^15 then, with room for what rounding has added to them.
__device__ inline int BoundedExponent(float bound) {
  constexpr int kOfBound = 14;
  const int exponent = ScaleExponent(__float_as_uint(bound));
  return min(exponent + kOfBound - kWantedExponent, kLargestExponent);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_RESULT_BOUNDS_CUH_
