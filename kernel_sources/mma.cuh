// Tensor-core products and asynchronous copies, sm_80 and up: one function for
// each PTX instruction that the convolution needs.
//
// A warp multiplies a 16 x 8 matrix A by an 8 x 8 matrix B. With g = lane / 4
// and t = lane % 4 a thread holds (PTX ISA, "Matrix Fragments for
// mma.m16n8k8"):
//
//   A[0], A[1]  rows g and g + 8, column t        A[2], A[3]  column t + 4
//   B[0], B[1]  column g, rows t and t + 4
//   D[0], D[1]  row g, columns 2t and 2t + 1      D[2], D[3]  row g + 8
#ifndef KILN_KERNEL_SOURCES_MMA_CUH_
#define KILN_KERNEL_SOURCES_MMA_CUH_

namespace kiln {

// TF32 numbers have 11 significant bits and the exponent range of f32; of a
// register that holds one the product ignores the 13 lowest bits.
constexpr unsigned kTf32Mask = 0xffffe000;

// The bits of the TF32 number nearest to x, ties away from zero; x must be
// finite. Two instructions: before sm_100 cvt.rna.tf32 is a sequence of five.
__device__ inline unsigned NearestTf32(float x) {
  return (__float_as_uint(x) + 0x1000) & kTf32Mask;
}

// The bits of the TF32 number nearest to x of those that are not further from
// zero. Infinities stay; a NaN whose payload lies in the bits cut off becomes
// the usual one.
__device__ inline unsigned TruncatedTf32(float x) {
  return x == x ? __float_as_uint(x) & kTf32Mask : 0x7fffe000;
}

// d += a * b
__device__ inline void AddProduct(float (&d)[4], const unsigned (&a)[4],
                                  unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Begins to copy 4 bytes to shared memory, or zeros where `from` may not be
// read. `from` must be a valid address in either case.
__device__ inline void CopyWordAsync(float* to, const float* from, bool read) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address),
               "l"(from), "r"(read ? 4 : 0)
               : "memory");
}

// The same for 16 bytes, both addresses multiples of 16.
__device__ inline void CopyQuadAsync(void* to, const void* from, bool read) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address),
               "l"(from), "r"(read ? 16 : 0)
               : "memory");
}

// Closes the group of this thread's copies since the last call.
__device__ inline void CommitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most kPending of this thread's newest groups are under way.
template <int kPending>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MMA_CUH_
