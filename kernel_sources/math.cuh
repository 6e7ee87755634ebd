// Pointwise operations, one function each, by PyTorch's definitions. Accuracy
// is that of the CUDA math library in f32 (at most a few ulp). NaN operands
// give NaN, also in minimum, maximum, relu and clamp, as in PyTorch.
#ifndef KILN_KERNEL_SOURCES_MATH_CUH_
#define KILN_KERNEL_SOURCES_MATH_CUH_

namespace kiln {

// The larger; NaN if either is.
__device__ inline float Maximum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a > b || a != a ? a : b;
#endif
}

// The smaller; NaN if either is.
__device__ inline float Minimum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a < b || a != a ? a : b;
#endif
}

// min(max(x, lower), upper)
__device__ inline float Clamp(float x, float lower, float upper) {
  return Minimum(Maximum(x, lower), upper);
}

// max(x, 0)
__device__ inline float Relu(float x) { return Maximum(x, 0.0f); }

// x if x > 0, else negative_slope * x
__device__ inline float LeakyRelu(float x, float negative_slope) {
  return x > 0.0f ? x : negative_slope * x;
}

// x / 2 * (1 + erf(x / sqrt(2)))
__device__ inline float Gelu(float x) {
  constexpr float kSqrtHalf = 0x1.6a09e6p-1f;
  return 0.5f * x * (1.0f + erff(x * kSqrtHalf));
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
__device__ inline float GeluTanh(float x) {
  constexpr float kSqrtTwoOverPi = 0x1.988454p-1f;
  constexpr float kCubic = 0.044715f;
  const float inner = kSqrtTwoOverPi * (x + kCubic * x * x * x);
  return 0.5f * x * (1.0f + tanhf(inner));
}

__device__ inline float Tanh(float x) { return tanhf(x); }

// 1 / (1 + e^-x)
__device__ inline float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// x * sigmoid(x)
__device__ inline float Silu(float x) { return x / (1.0f + expf(-x)); }

// min(max(x + 3, 0), 6) / 6
__device__ inline float Hardsigmoid(float x) {
  return Clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f);
}

// x * min(max(x + 3, 0), 6) / 6
__device__ inline float Hardswish(float x) {
  return x * Clamp(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f);
}

// x * tanh(log(1 + e^x))
__device__ inline float Mish(float x) { return x * tanhf(log1pf(expf(x))); }

// log(1 + e^(beta * x)) / beta; x itself once beta * x > threshold
__device__ inline float Softplus(float x, float beta, float threshold) {
  const float scaled = x * beta;
  return scaled > threshold ? x : log1pf(expf(scaled)) / beta;
}

// x if x > 0, else alpha * (e^x - 1)
__device__ inline float Elu(float x, float alpha) {
  return x > 0.0f ? x : alpha * expm1f(x);
}

__device__ inline float Abs(float x) { return fabsf(x); }
__device__ inline float Neg(float x) { return -x; }
__device__ inline float Exp(float x) { return expf(x); }
__device__ inline float Sqrt(float x) { return sqrtf(x); }

__device__ inline float Add(float a, float b) { return a + b; }
__device__ inline float Sub(float a, float b) { return a - b; }
__device__ inline float Mul(float a, float b) { return a * b; }
__device__ inline float Div(float a, float b) { return a / b; }

// (x - mean) * rstd * weight + bias. The difference comes first: it is exact
// for x near the mean, however large both are.
__device__ inline float Normalize(float x, float mean, float rstd, float weight,
                                  float bias) {
  return (x - mean) * rstd * weight + bias;
}

// 1 / sqrt(variance + eps), within 2 ulp
__device__ inline float ReciprocalStd(float variance, float eps) {
  return rsqrtf(variance + eps);
}

// e^(x - max) / sum
__device__ inline float Softmax(float x, float max, float sum) {
  return expf(x - max) / sum;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MATH_CUH_
