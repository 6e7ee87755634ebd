// Patches of an image as channels of a pixel:
//
//   output[n, (c * kKernelH + y) * kKernelW + x, h, w] =
//       input[n, c, h * kKernelH + y, w * kKernelW + x]
//
// input N x C x H x W, output N x (C kKernelH kKernelW) x OH x OW, contiguous.
// Rows and columns behind the last whole patch are left out. Spec::Read gives
// an input element, computed from whatever lies in memory. A thread moves
// Spec::kVector neighbours of a patch's row, which divide it and the image's:
// loaded in one access of up to 16 bytes, stored to as many channels, of which
// a warp has pixels side by side.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

// The output, where the channels of a thread are one.
template <typename Spec>
struct UnfoldedVectors {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  static constexpr Index kN = Output::kN, kC = Output::kC / Spec::kVector;
  static constexpr Index kH = Output::kH, kW = Output::kW;
};

// The input's first element of the vector at this place of them.
template <typename Spec, typename Index>
__device__ Point<Index> UnfoldedFrom(const Point<Index>& at) {
  constexpr Index kAcross = Spec::kKernelW / Spec::kVector;
  const Index x = at.c % kAcross * Spec::kVector;
  const Index y = at.c / kAcross % Spec::kKernelH;
  const Index c = at.c / (kAcross * Spec::kKernelH);
  return PointAt<typename Spec::Input, Index>(
      at.n, c, at.h * Spec::kKernelH + y, at.w * Spec::kKernelW + x);
}

template <typename Spec, typename Index>
__device__ void UnfoldVector(const typename Spec::Tensors& t,
                             const Point<Index>& at, bool is_aligned) {
  constexpr int kVector = Spec::kVector;
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  const auto from = UnfoldedFrom<Spec>(at);
  if constexpr (kVector == 1) {
    Spec::Element(t, at, Spec::Read(t, from));
  } else {
    typename Spec::template InputHeld<kVector> held;
    Spec::FetchInputHeld(t, from, is_aligned, &held);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      Spec::Element(
          t, PointAt<Output, Index>(at.n, at.c * kVector + k, at.h, at.w),
          Spec::Read(held, VectorPointOf<Input, kVector>(from, k)));
    }
  }
}

template <typename Spec>
__device__ void Unfold(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Vectors = UnfoldedVectors<Spec>;
  constexpr long long kCount = kNumElements<typename Spec::Output>;
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");
  static_assert(Spec::kKernelW % Spec::kVector == 0 &&
                    Spec::Input::kW % Spec::kVector == 0,
                "Vectors must not cross the end of a row.");
  bool is_aligned = true;
  if constexpr (Spec::kVector > 1) is_aligned = Spec::IsInputAligned(t);
#pragma unroll 1
  for (Index i = GridStart<Index>(BlockInMemory<Spec>());
       i < kNumElements<Vectors>; i += GridStride<Index>()) {
    UnfoldVector<Spec>(t, PointOf<Vectors>(i), is_aligned);
  }
}

}  // namespace kiln
