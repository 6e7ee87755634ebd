#ifndef KILN_MOVE_ELEMENTS_CUH_
#define KILN_MOVE_ELEMENTS_CUH_

#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

// Where an element of the output comes from: a place of the input, whose
// element does not count if there is none.
template <typename Index>
struct Source {
  Point<Index> at;
  bool is_there = true;
};

// Moves elements, each once: output[at] = input[from(at).at], or zero where
// nothing is there. `from` maps Point<Index> to Source<Index>. Spec::Read gives
// an input element, computed from whatever lies in memory. A block moves
// Spec::kThreads * kAtOnce elements, as many neighbours at a time as it has
// threads; all loads of a thread are on their way at once.
template <typename Spec, typename From>
__device__ void MoveElements(const typename Spec::Tensors& t,
                             const From& from) {
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
    const Source<Index> source = from(PointOf<Output>(i));
    const float value = Spec::Read(t, source.at);
    values[k] = source.is_there ? value : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const Index i = first + k * Spec::kThreads;
    if (i < kCount) Spec::Element(t, PointOf<Output>(i), values[k]);
  }
}

}  // namespace kiln

#endif  // KILN_MOVE_ELEMENTS_CUH_
