// Positions in tensors. Every tensor is seen with four axes n, c, h, w; one of
// lower rank has extents of 1 in front. A Shape is a struct of extents:
//
//   struct Output {
//     static constexpr int kN = 2, kC = 64, kH = 14, kW = 14;
//   };
//   const kiln::Point<int> at = kiln::PointOf<Output>(i);
//
// Extents are constants, so a division is a multiplication and a shift, and
// coordinates that nobody reads cost nothing.
#ifndef KILN_KERNEL_SOURCES_POINT_CUH_
#define KILN_KERNEL_SOURCES_POINT_CUH_

namespace kiln {

template <typename Index>
struct Point {
  Index i;  // position in memory, in elements, row-major
  Index n, c, h, w;
};

template <typename Shape>
constexpr long long kNumElements =
    static_cast<long long>(Shape::kN) * Shape::kC* Shape::kH* Shape::kW;

// The point at position `i` of memory.
template <typename Shape, typename Index>
__device__ Point<Index> PointOf(Index i) {
  Index rest = i;
  const Index w = rest % Shape::kW;
  rest /= Shape::kW;
  const Index h = rest % Shape::kH;
  rest /= Shape::kH;
  return {i, rest / Shape::kC, rest % Shape::kC, h, w};
}

// The point with these coordinates.
template <typename Shape, typename Index>
__device__ Point<Index> PointAt(Index n, Index c, Index h, Index w) {
  const Index i = ((n * Shape::kC + c) * Shape::kH + h) * Shape::kW + w;
  return {i, n, c, h, w};
}

// The block's number in the order of memory. Blocks go through it backwards
// where the kernel before has gone forwards through the same tensors: the L2
// cache has what was touched last.
template <typename Spec>
__device__ unsigned BlockInMemory() {
  return Spec::kBackwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
}

// First position of this thread in a grid-stride loop, and the stride. Index
// is wide enough for count + stride: the host sees to that.
template <typename Index>
__device__ Index GridStart(unsigned block = blockIdx.x) {
  return static_cast<Index>(block) * blockDim.x + threadIdx.x;
}

template <typename Index>
__device__ Index GridStride() {
  return static_cast<Index>(gridDim.x) * blockDim.x;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_POINT_CUH_
