// Instructions on pairs of binary16, and products of matrices of them; sm_80
// and up.
#ifndef KILN_KERNEL_SOURCES_PTX_HALVES_CUH_
#define KILN_KERNEL_SOURCES_PTX_HALVES_CUH_

namespace kiln::ptx {

// a - b, half by half.
__device__ inline unsigned SubtractHalves(unsigned a, unsigned b) {
  unsigned difference;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
  return difference;
}

// 0 x + sum, half by half: no zero where x is infinite or no number.
__device__ inline unsigned ZeroTimesHalves(unsigned x, unsigned sum) {
  unsigned result;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(0), "r"(sum));
  return result;
}

// d += a * b, of a 16 x 16 matrix A and a 16 x 8 matrix B. With g = lane / 4
// and t = lane % 4 a thread holds (PTX ISA, "Matrix Fragments for
// mma.m16n8k16"), in pairs:
//
//   A[0], A[1]  rows g and g + 8, columns 2t and 2t + 1; A[2], A[3] 8 behind
//   b0, b1      column g, rows 2t and 2t + 1; 8 behind
//   D[0], D[1]  row g, columns 2t and 2t + 1      D[2], D[3]  row g + 8
__device__ inline void AddProductOfHalves(float (&d)[4], const unsigned (&a)[4],
                                          unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The same of bfloat16 numbers.
__device__ inline void AddProductOfBFloats(float (&d)[4],
                                           const unsigned (&a)[4], unsigned b0,
                                           unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_PTX_HALVES_CUH_
