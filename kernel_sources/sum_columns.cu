// Adds up what a filter's columns, each a filter of its own, have made of whole
// rows:
//
//   output[n, c, y, x] =
//       sum over k of input[n, c * kColumns + k, y, x + k * kDilation -
//       kPadding]
//
// input N x (C kColumns) x H x W, output N x C x H x OW, contiguous; columns
// beyond a row contribute nothing. A thread has an element, and all of its
// loads on their way at once.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec, typename Index>
__device__ float SumOfColumns(const typename Spec::Tensors& t,
                              const Point<Index>& at) {
  using Input = typename Spec::Input;
  float columns[Spec::kColumns];
#pragma unroll
  for (int k = 0; k < Spec::kColumns; ++k) {
    const Index w = at.w + k * Spec::kDilation - Spec::kPadding;
    const auto from =
        PointAt<Input, Index>(at.n, at.c * Spec::kColumns + k, at.h, w);
    const bool is_inside = w >= 0 && w < Input::kW;
    columns[k] = is_inside ? Load(t.input, from.i) : 0.0f;
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < Spec::kColumns; ++k) sum += columns[k];
  return sum;
}

template <typename Spec>
__device__ void SumColumns(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  constexpr long long kCount = kNumElements<Output>;
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");
#pragma unroll 1
  for (Index i = GridStart<Index>(BlockInMemory<Spec>()); i < kCount;
       i += GridStride<Index>()) {
    const auto at = PointOf<Output>(i);
    Spec::Element(t, at, SumOfColumns<Spec>(t, at));
  }
}

}  // namespace kiln
