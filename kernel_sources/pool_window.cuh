// The part of an image that lies under a pooling's window, and what becomes of
// the sum of its elements.
#ifndef KILN_KERNEL_SOURCES_POOL_WINDOW_CUH_
#define KILN_KERNEL_SOURCES_POOL_WINDOW_CUH_

#include "math.cuh"
#include "point.cuh"

namespace kiln {

// The taps [begin, end) that lie inside, along one axis, of a window that
// begins at `first`. Others may be many where nearly all is padding.
template <typename Index>
struct TapsInside {
  Index begin = 0, end = 0;

  __device__ TapsInside(Index first, int kernel, unsigned dilation,
                        Index extent) {
    // Of 32 bits, whose division is no call.
    const auto before = static_cast<unsigned>(first < 0 ? -first : 0);
    const Index left = extent - first;
    if (left <= 0) return;
    begin = before / dilation + (before % dilation != 0 ? 1 : 0);
    const Index last = (static_cast<unsigned>(left) - 1) / dilation;
    end = min(last + 1, static_cast<Index>(kernel));
  }
};

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

// The mean of output `at`, whose window has the sum `sum`.
template <typename Spec, typename Index>
__device__ float DivideSum(const Point<Index>& at, float sum) {
  using Input = typename Spec::Input;
  if constexpr (Spec::kDivisor != 0) {
    return QuotientByConstant(sum, static_cast<float>(Spec::kDivisor));
  } else {
    const Window<Index> rows = WindowAt<Index>(
        at.h, Spec::kKernelH, Spec::kStrideH, Spec::kPaddingH, Input::kH);
    const Window<Index> columns = WindowAt<Index>(
        at.w, Spec::kKernelW, Spec::kStrideW, Spec::kPaddingW, Input::kW);
    if (rows.begin >= rows.end || columns.begin >= columns.end) return 0.0f;
    const Index count =
        Spec::kCountIncludePad
            ? rows.padded_length * columns.padded_length
            : (rows.end - rows.begin) * (columns.end - columns.begin);
    return sum / static_cast<float>(count);
  }
}

template <typename Spec, typename Index>
__device__ float FinishPool(const Point<Index>& at, float result) {
  if constexpr (Spec::kMax) {
    return result;
  } else {
    return DivideSum<Spec>(at, result);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_POOL_WINDOW_CUH_
