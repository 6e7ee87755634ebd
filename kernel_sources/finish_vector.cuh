// What follows the sums of neighbours that a thread has in registers.
//
//   kiln::FinishVector<Spec>(t, first, is_aligned, sums);
#ifndef KILN_KERNEL_SOURCES_FINISH_VECTOR_CUH_
#define KILN_KERNEL_SOURCES_FINISH_VECTOR_CUH_

#include "point.cuh"
#include "vectors.cuh"

namespace kiln {

// What follows for the kVector sums from `sums` on, of neighbours, with what
// FetchHeld brought.
template <typename Spec, typename Index, typename Held>
__device__ void FinishHeld(const typename Spec::Tensors& t,
                           const Point<Index>& first, bool is_aligned,
                           const float* sums, Held* held) {
#pragma unroll
  for (int k = 0; k < Spec::kVector; ++k) {
    Spec::Element(*held,
                  VectorPointOf<typename Spec::Output, Spec::kVector>(first, k),
                  sums[k]);
  }
  Spec::PutHeld(*held, first, is_aligned, t);
}

// The same, which also fetches.
template <typename Spec, typename Index>
__device__ void FinishVector(const typename Spec::Tensors& t,
                             const Point<Index>& first, bool is_aligned,
                             const float* sums) {
  if constexpr (Spec::kVector == 1) {
    Spec::Element(t, first, sums[0]);
  } else {
    typename Spec::template Held<Spec::kVector> held;
    Spec::FetchHeld(t, first, is_aligned, &held);
    FinishHeld<Spec>(t, first, is_aligned, sums, &held);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_FINISH_VECTOR_CUH_
