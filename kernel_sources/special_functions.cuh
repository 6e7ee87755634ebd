// The instructions of the special function unit: one issue slot each, a
// quarter of the rate of a multiplication, denormals read and written as zero.
// Bounds are those of the PTX ISA manual. math.cuh builds on them; tests stand
// functions of the same names and bounds in their place.
//
//   const float sigmoid = kiln::Reciprocal(1.0f + kiln::Exp2(-x * kLog2E));
#ifndef KILN_KERNEL_SOURCES_SPECIAL_FUNCTIONS_CUH_
#define KILN_KERNEL_SOURCES_SPECIAL_FUNCTIONS_CUH_

namespace kiln {

// 2^x within 2^-22.5 of itself; exact for integers
__device__ inline float Exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// 1 / x within 1 ulp
__device__ inline float Reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// tanh(x) within 2^-11 of itself, from -1 to 1
__device__ inline float ApproximateTanh(float x) {
  float result;
  asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_SPECIAL_FUNCTIONS_CUH_
