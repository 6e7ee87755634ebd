// Patches of an image as channels of a pixel:
//
//   output[n, (c * kKernelH + y) * kKernelW + x, h, w] =
//       input[n, c, h * kKernelH + y, w * kKernelW + x]
//
// input N x C x H x W, output N x (C kKernelH kKernelW) x OH x OW, contiguous.
// Rows and columns behind the last whole patch are left out. Spec::Read gives
// an input element, computed from whatever lies in memory. One thread moves one
// element: what a warp reads lies a patch's width apart, and the next channels
// of the output have the rest of these sectors from the L1.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec>
__device__ void Unfold(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  constexpr long long kCount = kNumElements<typename Spec::Output>;
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");
#pragma unroll 1
  for (Index i = GridStart<Index>(BlockInMemory<Spec>()); i < kCount;
       i += GridStride<Index>()) {
    const auto at = PointOf<typename Spec::Output>(i);
    const Index x = at.c % Spec::kKernelW;
    const Index y = at.c / Spec::kKernelW % Spec::kKernelH;
    const Index c = at.c / (Spec::kKernelW * Spec::kKernelH);
    const auto from = PointAt<Input, Index>(at.n, c, at.h * Spec::kKernelH + y,
                                            at.w * Spec::kKernelW + x);
    Spec::Element(t, at, Spec::Read(t, from));
  }
}

}  // namespace kiln
