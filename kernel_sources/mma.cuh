// Tensor-core products of TF32 numbers, sm_80 and up.
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

// The same where x may be so near f32's largest number that infinity is nearer
// than any TF32 number: then the largest of these.
__device__ inline unsigned NearestFiniteTf32(float x) {
  const float largest = __uint_as_float(0x7f7fffff & kTf32Mask);
  return NearestTf32(fmaxf(fminf(x, largest), -largest));
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

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MMA_CUH_
