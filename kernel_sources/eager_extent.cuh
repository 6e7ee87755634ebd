// Coordinates of an element from its index.
//
//   long long rest = i;
//   const long long w = kiln::TakeInner(p.output_w, &rest);
//   const long long h = kiln::TakeInner(p.output_h, &rest);
#ifndef KILN_KERNEL_SOURCES_EAGER_EXTENT_CUH_
#define KILN_KERNEL_SOURCES_EAGER_EXTENT_CUH_

#include "eager_parameters.cuh"

namespace kiln {

// i % extent, with what is left, i / extent, in its place. For i below 2^50,
// whose quotient by way of the reciprocal is off by one at most.
__device__ inline long long TakeInner(const EagerExtent& extent, long long* i) {
  long long quotient =
      static_cast<long long>(static_cast<double>(*i) * extent.reciprocal);
  long long remainder = *i - quotient * extent.size;
  if (remainder < 0) {
    --quotient;
    remainder += extent.size;
  } else if (remainder >= extent.size) {
    ++quotient;
    remainder -= extent.size;
  }
  *i = quotient;
  return remainder;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_EAGER_EXTENT_CUH_
