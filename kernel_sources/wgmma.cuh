// Warpgroup products of Hopper (sm_90a). Four warps multiply a 64 x 16 matrix A
// by a 16 x n matrix B, both of 16-bit numbers in shared memory; each warp gets
// 16 rows of the product, laid out like those of mma.cuh. The products
// themselves, PTX whose operands depend on n, are part of the generated unit
// (jit/compile/warpgroup_text.h).
//
// Without swizzling a matrix consists of core matrices of 8 rows x 16 bytes,
// contiguous (PTX ISA, "Matrix Descriptor"). A row is eight numbers of k. So
// rows, or columns of B, may be any run of 16-byte units: a filter tap only
// moves the address.
//
// A row that is shifted by one unit then lies across two lines of 128 bytes,
// and is read at half the speed. Not so with a swizzle of 32 bytes: a row has
// two units, of both halves of k, which change places in every other four rows
// by their address, wherever a matrix begins.
#ifndef KILN_KERNEL_SOURCES_WGMMA_CUH_
#define KILN_KERNEL_SOURCES_WGMMA_CUH_

namespace kiln {

// The lower word of a matrix descriptor: where the matrix lies, in units of 16
// bytes, and from bit 16 on, how far behind lie the second eight numbers of k,
// which is for the product to add. The upper word says how far apart groups of
// eight rows are.
using Descriptor = unsigned;

// The matrix at `address`, the same in the whole warp. The tensor cores take
// descriptors from uniform registers: all of a product's are computed there
// where the compiler knows `address` to be the same. In a cluster addresses
// have their block's rank, too, in bits of a descriptor that mean something
// else.
template <bool kInCluster>
__device__ Descriptor MatrixAt(const void* address) {
  constexpr Descriptor kUnits = (1 << 14) - 1;
  const auto unit =
      static_cast<Descriptor>(__cvta_generic_to_shared(address)) >> 4;
  return kInCluster ? unit & kUnits : unit;
}

// Of half `half` of row `row`, from the begin of rows that is a multiple of 256
// bytes.
__device__ inline int SwizzledUnit(int row, int half) {
  return 2 * row + ((half ^ row >> 2) & 1);
}

// Makes what this thread has written to shared memory visible to products.
// A barrier between the threads must follow.
__device__ inline void PublishShared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The same of what others have written before they arrived at a barrier that
// this thread has waited at.
__device__ inline void AcquireShared() { PublishShared(); }

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

// Gives registers of this warpgroup back, so that each thread has kCount.
template <int kCount>
__device__ void KeepRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Takes registers that others have given back.
template <int kCount>
__device__ void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_WGMMA_CUH_
