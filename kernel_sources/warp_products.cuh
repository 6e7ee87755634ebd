// Products of matrices by a warp, of numbers as they lie in memory (sm_80 and
// up): d += a * b, by the fragments of mma.cuh and ptx_halves.cuh. The last
// argument says of which type; f32 stands for the numbers of TF32 that it
// holds.
#ifndef KILN_KERNEL_SOURCES_WARP_PRODUCTS_CUH_
#define KILN_KERNEL_SOURCES_WARP_PRODUCTS_CUH_

#include "mma.cuh"
#include "ptx_halves.cuh"
#include "storage_types.cuh"

namespace kiln {

__device__ inline void AddWarpProduct(float (&d)[4], const uint4& a,
                                      unsigned b0, unsigned b1, float) {
  const unsigned words[4] = {a.x, a.y, a.z, a.w};
  AddProduct(d, words, b0, b1);
}

__device__ inline void AddWarpProduct(float (&d)[4], const uint4& a,
                                      unsigned b0, unsigned b1, Float16) {
  const unsigned words[4] = {a.x, a.y, a.z, a.w};
  ptx::AddProductOfHalves(d, words, b0, b1);
}

__device__ inline void AddWarpProduct(float (&d)[4], const uint4& a,
                                      unsigned b0, unsigned b1, BFloat16) {
  const unsigned words[4] = {a.x, a.y, a.z, a.w};
  ptx::AddProductOfBFloats(d, words, b0, b1);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_WARP_PRODUCTS_CUH_
