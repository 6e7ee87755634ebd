// output = f(inputs), element by element, with broadcasting.
//
// Each thread takes Spec::kVector neighbours at once: what a tensor has for
// them is one access of up to 16 bytes, unless it is broadcast in a way that
// they share or scatter. Spec::Element computes one element, of what the thread
// holds or, for the last few, straight from memory. Spec::kVector is 1 where
// elements are too few to share.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

// The elements of one vector, which lies in one channel or may not.
template <typename Spec, bool kInChannel, typename Held>
__device__ void VectorElements(const Point<typename Spec::Index>& first,
                               Held* held) {
#pragma unroll
  for (int k = 0; k < Spec::kVector; ++k) {
    Spec::Element(
        *held, VectorPointOf<typename Spec::Output, Spec::kVector, kInChannel>(
                   first, k));
  }
}

// The elements of whole vectors.
template <typename Spec>
__device__ void PointwiseVectors(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  constexpr int kVector = Spec::kVector;
  constexpr Index kVectors = kNumElements<Output> / kVector;
  const bool is_aligned = Spec::IsAligned(t);

#pragma unroll 1
  for (Index i = GridStart<Index>(BlockInMemory<Spec>()); i < kVectors;
       i += GridStride<Index>()) {
    const auto first = PointOf<Output>(i * kVector);
    typename Spec::template Held<kVector> held;
    Spec::FetchHeld(t, first, is_aligned, &held);
    if (LiesInChannel<Output, kVector>(first.i)) {
      VectorElements<Spec, true>(first, &held);
    } else {
      VectorElements<Spec, false>(first, &held);
    }
    Spec::PutHeld(held, first, is_aligned, t);
  }
}

template <typename Spec>
__device__ void Pointwise(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  constexpr long long kCount = kNumElements<typename Spec::Output>;
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");

  constexpr Index kInVectors =
      Spec::kVector > 1 ? kCount / Spec::kVector * Spec::kVector : 0;
  if constexpr (kInVectors > 0) PointwiseVectors<Spec>(t);
  if constexpr (kInVectors < kCount) {
#pragma unroll 1
    for (Index i = kInVectors + GridStart<Index>(BlockInMemory<Spec>());
         i < kCount; i += GridStride<Index>()) {
      Spec::Element(t, PointOf<typename Spec::Output>(i));
    }
  }
}

}  // namespace kiln
