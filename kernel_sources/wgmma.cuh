// Warpgroup products of Hopper (sm_90a). Four warps multiply a 64 x 8 matrix A
// by an 8 x n matrix B, both TF32 in shared memory; each warp gets 16 rows of
// the product, laid out like those of mma.cuh. Spec::AddProducts, one PTX
// instruction whose operands depend on n, is part of the generated unit.
//
// Without swizzling a matrix consists of core matrices of 8 rows x 16 bytes,
// contiguous (PTX ISA, "Matrix Descriptor"). A row is four numbers of k. So
// rows may be any run of 16-byte units: a filter tap only moves the address.
#ifndef KILN_KERNEL_SOURCES_WGMMA_CUH_
#define KILN_KERNEL_SOURCES_WGMMA_CUH_

namespace kiln {

using Descriptor = unsigned long long;

// The matrix at `address` whose groups of eight rows follow each other and
// whose second four columns lie `columns` units of 16 bytes behind.
__device__ inline Descriptor MatrixAt(const void* address, int columns) {
  const unsigned unit =
      static_cast<unsigned>(__cvta_generic_to_shared(address)) >> 4;
  constexpr Descriptor kEightRows = 8;
  return kEightRows << 32 | static_cast<Descriptor>(columns) << 16 |
         static_cast<Descriptor>(unit & 0x3fff);
}

// Makes what this thread has written to shared memory visible to products.
// A barrier between the threads must follow.
__device__ inline void PublishShared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Tells the compiler that the tensor cores use `sums` between the last call and
// this one, so that it moves nothing across. To be called before the first
// product of a group and after the wait for the last.
template <int kCount>
__device__ void HoldSums(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Before the first product of a group.
__device__ inline void BeginProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Closes the group.
__device__ inline void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits for the results of all groups.
__device__ inline void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_WGMMA_CUH_
