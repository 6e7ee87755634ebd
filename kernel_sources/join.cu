// Images side by side: all pixels of a channel, image by image.
//
//   output[c, n, p] = input[n, c, p]
//
// input N x C x H x W, output 1 x C x N x P with P = H W pixels, contiguous.
// Spec::Read gives an input element, computed from whatever lies in memory. A
// block moves Spec::kThreads * kAtOnce elements, as many neighbours at a time
// as it has threads; all loads of a thread are on their way at once.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

// Where an element of the output comes from.
template <typename Spec, typename Index>
__device__ Point<Index> JoinedFrom(const Point<Index>& at) {
  using Input = typename Spec::Input;
  return PointAt<Input, Index>(at.h, at.c, at.w / Input::kW, at.w % Input::kW);
}

template <typename Spec>
__device__ void Join(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  constexpr int kAtOnce = Spec::kAtOnce;
  constexpr long long kCount = kNumElements<Output>;
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");
  const Index first =
      static_cast<Index>(BlockInMemory<Spec>()) * (Spec::kThreads * kAtOnce) +
      threadIdx.x;
  float values[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const Index i =
        min(first + k * Spec::kThreads, static_cast<Index>(kCount - 1));
    values[k] = Spec::Read(t, JoinedFrom<Spec>(PointOf<Output>(i)));
  }
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const Index i = first + k * Spec::kThreads;
    if (i < kCount) Spec::Element(t, PointOf<Output>(i), values[k]);
  }
}

}  // namespace kiln
