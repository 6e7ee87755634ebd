// How large a convolution's results can be, for a scale that is chosen before
// any of them is known: no more than `slope` times the largest finite magnitude
// of the input's numbers at that pixel, and `offset`. Of what comes from
// infinities and NaNs nothing is said: such results need no scale.
#ifndef KILN_KERNEL_SOURCES_RESULT_BOUNDS_CUH_
#define KILN_KERNEL_SOURCES_RESULT_BOUNDS_CUH_

#include "conv_halves.cuh"

namespace kiln {

constexpr float kLargestFinite = 0x1.fffffep+127f;

class ResultBound {
 public:
  __device__ ResultBound(float slope, float offset)
      : slope_(Finite(slope)), offset_(Finite(offset)) {}

  __device__ float slope() const { return slope_; }
  __device__ float offset() const { return offset_; }

  __device__ float Of(float most) const {
    return fminf(fmaf(slope_, most, offset_), kLargestFinite);
  }

  // Of what is multiplied by x, or is more or less by x.
  __device__ void Multiply(float x) {
    slope_ = fminf(slope_ * Finite(x), kLargestFinite);
    offset_ = fminf(offset_ * Finite(x), kLargestFinite);
  }
  __device__ void Add(float x) {
    offset_ = fminf(offset_ + Finite(x), kLargestFinite);
  }

  // Of both.
  __device__ void Join(float slope, float offset) {
    slope_ = fmaxf(slope_, slope);
    offset_ = fmaxf(offset_, offset);
  }

  // The magnitude, 0 of what is not finite.
  static __device__ float Finite(float x) {
    return MagnitudeBits(x) < kInfinityBits ? fabsf(x) : 0.0f;
  }

 private:
  float slope_, offset_;
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
