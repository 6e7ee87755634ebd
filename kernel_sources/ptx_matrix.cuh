// PTX that moves matrices of 8 x 8 numbers of 16 bits between shared memory and
// a warp's registers (PTX ISA, "ldmatrix" and "stmatrix"; sm_90 and up). A row
// is 16 bytes at a multiple of 16. Lane i has the address of row i % 8 of
// matrix i / 8, for all lanes together.
#ifndef KILN_KERNEL_SOURCES_PTX_MATRIX_CUH_
#define KILN_KERNEL_SOURCES_PTX_MATRIX_CUH_

#include "shared_address.cuh"

namespace kiln::ptx {

// Four matrices, a register of each: their columns, as rows of what
// StoreMatrices stores.
__device__ inline uint4 LoadTransposed(const uint4* row) {
  uint4 values;
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(values.x), "=r"(values.y), "=r"(values.z), "=r"(values.w)
      : "r"(SharedAddress(row))
      : "memory");
  return values;
}

// The same, as StoreMatrices stores them.
__device__ inline uint4 LoadMatrices(const uint4* row) {
  uint4 values;
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(values.x), "=r"(values.y), "=r"(values.z), "=r"(values.w)
      : "r"(SharedAddress(row))
      : "memory");
  return values;
}

__device__ inline void StoreMatrices(uint4* row, const uint4& values) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
      :
      : "r"(SharedAddress(row)), "r"(values.x), "r"(values.y), "r"(values.z),
        "r"(values.w)
      : "memory");
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_PTX_MATRIX_CUH_
