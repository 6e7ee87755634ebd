// output = f(inputs), element by element, with broadcasting.
//
// One thread per element of the output shape; Spec::Element loads what it
// needs, computes and stores. Loads of neighbouring threads are neighbours in
// memory wherever the operand is not broadcast along w.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec>
__device__ void Pointwise(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  constexpr long long kCount = kNumElements<typename Spec::Output>;
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");

#pragma unroll 1
  for (Index i = GridStart<Index>(); i < kCount; i += GridStride<Index>()) {
    Spec::Element(t, PointOf<typename Spec::Output>(i));
  }
}

}  // namespace kiln
