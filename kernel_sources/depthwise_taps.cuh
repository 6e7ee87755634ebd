// What the ways through a depthwise convolution share: the filter's taps, and
// sums made with care for those that are not finite.
//
//   kiln::LoadTaps<Spec::kKernelW>(t.weight, from, row);
//   const bool is_finite = kiln::ZeroOf<Spec::kKernelW>(row) == 0.0f;
//   if (!is_finite) kiln::SumWithCare<Spec>(t, first, sums);
#ifndef KILN_KERNEL_SOURCES_DEPTHWISE_TAPS_CUH_
#define KILN_KERNEL_SOURCES_DEPTHWISE_TAPS_CUH_

#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

// Loads kCount taps of a row of the filter from `from` on.
template <int kCount, typename T, typename Index>
__device__ void LoadTaps(const T* weight, Index from, float* taps) {
#pragma unroll
  for (int kx = 0; kx < kCount; ++kx) taps[kx] = Load(weight, from + kx);
}

// NaN if a tap is not finite, else 0.
template <int kCount>
__device__ float ZeroOf(const float* taps) {
  float zero = 0.0f;
#pragma unroll
  for (int kx = 0; kx < kCount; ++kx) zero = fmaf(taps[kx], 0.0f, zero);
  return zero;
}

// Loads the filter of channel `c`; NaN if a tap is not finite, else 0.
template <typename Spec, typename Index>
__device__ float LoadFilter(const typename Spec::Tensors& t, Index c,
                            float* filter) {
  constexpr int kTaps = Spec::kKernelH * Spec::kKernelW;
#pragma unroll
  for (int ky = 0; ky < Spec::kKernelH; ++ky) {
    LoadTaps<Spec::kKernelW>(t.weight, c * kTaps + ky * Spec::kKernelW,
                             filter + ky * Spec::kKernelW);
  }
  float zero = 0.0f;
#pragma unroll
  for (int ky = 0; ky < Spec::kKernelH; ++ky) {
    zero += ZeroOf<Spec::kKernelW>(filter + ky * Spec::kKernelW);
  }
  return zero;
}

// The input's plane that output channel `c` of image `n` reads.
template <typename Spec, typename Index>
__device__ Index PlaneOf(const Point<Index>& at) {
  return at.n * Spec::Input::kC + at.c / Spec::kMultiplier;
}

// The sums of the outputs from `first` on, with each product made only where
// it should be.
template <typename Spec, typename Index, int kRows, int kColumns>
__device__ void SumWithCare(const typename Spec::Tensors& t,
                            const Point<Index>& first,
                            float (&sums)[kRows][kColumns]) {
  using Input = typename Spec::Input;
  const Index plane = PlaneOf<Spec>(first);
#pragma unroll
  for (int y = 0; y < kRows; ++y) {
#pragma unroll
    for (int x = 0; x < kColumns; ++x) sums[y][x] = 0.0f;
  }
#pragma unroll 1
  for (int k = 0; k < Spec::kKernelH * Spec::kKernelW; ++k) {
    const float tap =
        Load(t.weight, first.c * (Spec::kKernelH * Spec::kKernelW) + k);
    const Index top = first.h * Spec::kStrideH - Spec::kPaddingH +
                      k / Spec::kKernelW * Spec::kDilationH;
    const Index left = first.w * Spec::kStrideW - Spec::kPaddingW +
                       k % Spec::kKernelW * Spec::kDilationW;
#pragma unroll
    for (int y = 0; y < kRows; ++y) {
#pragma unroll
      for (int x = 0; x < kColumns; ++x) {
        const Index h = top + y * Spec::kStrideH;
        const Index w = left + x * Spec::kStrideW;
        if (h < 0 || h >= Input::kH || w < 0 || w >= Input::kW) continue;
        const Index i = (plane * Input::kH + h) * Input::kW + w;
        sums[y][x] = fmaf(Load(t.input, i), tap, sums[y][x]);
      }
    }
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_DEPTHWISE_TAPS_CUH_
