// max_pool2d: output[n,c,y,x] = the largest of the window, NaN if it holds one.
// avg_pool2d: output[n,c,y,x] = sum of the window / divisor, where the divisor
// is the part of the window inside the input, with padding or without, or a
// constant; 0 for a window without elements.
//
// input N x C x H x W, output N x C x OH x OW, contiguous. One thread per
// output element. Spec::Read gives an input element, computed from whatever
// lies in memory, so pooling fuses with the pointwise operations before it.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec, typename Index>
__device__ float MaxPool2dAt(const typename Spec::Tensors& t, Point<Index> at) {
  using Input = typename Spec::Input;
  const Index top = at.h * Spec::kStrideH - Spec::kPaddingH;
  const Index left = at.w * Spec::kStrideW - Spec::kPaddingW;

  float largest = -__int_as_float(0x7f800000);  // -infinity: of no elements
#pragma unroll 1
  for (int ky = 0; ky < Spec::kKernelH; ++ky) {
    const Index h = top + ky * Spec::kDilationH;
    if (h < 0 || h >= Input::kH) continue;
#pragma unroll 1
    for (int kx = 0; kx < Spec::kKernelW; ++kx) {
      const Index w = left + kx * Spec::kDilationW;
      if (w < 0 || w >= Input::kW) continue;
      const auto from = PointAt<Input, Index>(at.n, at.c, h, w);
      largest = Maximum(largest, Spec::Read(t, from));
    }
  }
  return largest;
}

// The part [begin, end) of a window along one axis, and how long it would be
// with the padding counted.
template <typename Index>
struct Window {
  Index begin, end, padded_length;
};

template <typename Index>
__device__ Window<Index> WindowAt(Index output, int kernel, int stride,
                                  int padding, Index extent) {
  const Index begin = output * stride - padding;
  const Index padded_end = min(begin + kernel, extent + padding);
  return {max(begin, static_cast<Index>(0)), min(padded_end, extent),
          padded_end - begin};
}

template <typename Spec, typename Index>
__device__ float AvgPool2dAt(const typename Spec::Tensors& t, Point<Index> at) {
  using Input = typename Spec::Input;
  const Window<Index> rows = WindowAt<Index>(
      at.h, Spec::kKernelH, Spec::kStrideH, Spec::kPaddingH, Input::kH);
  const Window<Index> columns = WindowAt<Index>(
      at.w, Spec::kKernelW, Spec::kStrideW, Spec::kPaddingW, Input::kW);
  if (rows.begin >= rows.end || columns.begin >= columns.end) return 0.0f;

  // Row by row: short chains of additions keep the error small.
  float sum = 0.0f;
#pragma unroll 1
  for (Index h = rows.begin; h < rows.end; ++h) {
    float row_sum = 0.0f;
#pragma unroll 1
    for (Index w = columns.begin; w < columns.end; ++w) {
      row_sum += Spec::Read(t, PointAt<Input, Index>(at.n, at.c, h, w));
    }
    sum += row_sum;
  }

  if constexpr (Spec::kDivisorOverride != 0) {
    return sum / static_cast<float>(Spec::kDivisorOverride);
  } else if constexpr (Spec::kCountIncludePad) {
    return sum / static_cast<float>(rows.padded_length * columns.padded_length);
  } else {
    return sum / static_cast<float>((rows.end - rows.begin) *
                                    (columns.end - columns.begin));
  }
}

template <typename Spec>
__device__ void Pool2d(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  constexpr long long kCount = kNumElements<typename Spec::Output>;
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");

#pragma unroll 1
  for (Index i = GridStart<Index>(); i < kCount; i += GridStride<Index>()) {
    const auto at = PointOf<typename Spec::Output>(i);
    if constexpr (Spec::kMax) {
      Spec::Element(t, at, MaxPool2dAt<Spec>(t, at));
    } else {
      Spec::Element(t, at, AvgPool2dAt<Spec>(t, at));
    }
  }
}

}  // namespace kiln
