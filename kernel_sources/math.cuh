// Longer than 400 lines because functions stand beside what they are made of.
// Pointwise operations, one function each, by PyTorch's definitions. NaN
// operands give NaN, also in minimum, maximum, relu and clamp, as in PyTorch.
//
// Transcendental functions are straight-line code around the special function
// unit: no branches, no calls, 8 to 25 instructions. Their errors, beside each
// as the largest that math_test finds against double if the unit errs as it
// may, are near those of PyTorch's functions. Polynomials are minimax fits by
// Remez exchange in 40 digits, weighted by the error of the result,
// coefficients then rounded.
//
// Bounds and Reach are what the compiler knows of an argument from its range
// (jit/compile/value_ranges.h): work that cannot matter is left out.
//
// Accuracy here is that of the grade fp32. What the grade tf32 does otherwise
// is decided in jit/compile/call_rewrites.cc.
#ifndef KILN_KERNEL_SOURCES_MATH_CUH_
#define KILN_KERNEL_SOURCES_MATH_CUH_

#include "special_functions.cuh"

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

// The bounds of a clamp that an argument can lie beyond.
enum class Bounds { kNone, kLower, kUpper, kBoth };

// min(max(x, lower), upper)
template <Bounds kBounds = Bounds::kBoth>
__device__ float Clamp(float x, float lower, float upper) {
  if (kBounds == Bounds::kLower || kBounds == Bounds::kBoth) {
    x = Maximum(x, lower);
  }
  if (kBounds == Bounds::kUpper || kBounds == Bounds::kBoth) {
    x = Minimum(x, upper);
  }
  return x;
}

// max(x, 0)
__device__ inline float Relu(float x) { return Maximum(x, 0.0f); }

// x if x > 0, else negative_slope * x
__device__ inline float LeakyRelu(float x, float negative_slope) {
  return x > 0.0f ? x : negative_slope * x;
}

// coefficients[0] + x * (coefficients[1] + x * ...)
template <int kCount>
__device__ float Polynomial(float x, const float (&coefficients)[kCount]) {
  float result = coefficients[kCount - 1];
#pragma unroll
  for (int i = kCount - 2; i >= 0; --i) {
    result = fmaf(result, x, coefficients[i]);
  }
  return result;
}

// a / b within 1 ulp, for b from 2^-126 to 2^126 and a result that is finite
__device__ inline float Quotient(float a, float b) {
  const float reciprocal = Reciprocal(b);
  const float quotient = a * reciprocal;
  return fmaf(fmaf(-b, quotient, a), reciprocal, quotient);
}

// a / b, rounded correctly but for denormals, where the compiler knows b
__device__ inline float QuotientByConstant(float a, float b) {
  if (!(fabsf(b) < __int_as_float(0x7f800000))) return a / b;
  const float reciprocal = 1.0f / b;
  const float quotient = a * reciprocal;
  const float better = fmaf(fmaf(-b, quotient, a), reciprocal, quotient);
  return fabsf(quotient) < __int_as_float(0x7f800000) ? better : quotient;
}

// How far from zero the argument of a power of e can be: up to 1, up to 80, or
// anywhere.
enum class Reach { kSmall, kBounded, kAny };

// e^x = 2^t for t near x * log2(e), which is below 2, corrected for the
// rounding of t where it is not. 2.2 and 2.0 ulp.
template <Reach kReach>
__device__ float ExpWithin(float x) {
  constexpr float kLog2E = 0x1.715476p+0f;
  constexpr float kLog2ELow = 0x1.4ae0c0p-26f;
  constexpr float kLn2 = 0x1.62e430p-1f;
  const float t = x * kLog2E;
  const float power = Exp2(t);
  if (kReach == Reach::kSmall) return power;
  const float rest = fmaf(x, kLog2ELow, fmaf(x, kLog2E, -t));
  return fmaf(power * rest, kLn2, power);
}

// e^x = 2^n * 2^r with n = floor(x * log2(e)), held to the exponents of normal
// numbers, so that r takes what is beyond: 0 or infinity. 2.3 ulp.
template <Reach kReach = Reach::kAny>
__device__ float Exp(float x) {
  if (kReach != Reach::kAny) return ExpWithin<kReach>(x);
  constexpr float kLog2E = 0x1.715476p+0f;
  constexpr float kLog2ELow = 0x1.4ae0c0p-26f;
  // 1.5 * 2^23 makes the bits of a sum end in its integer part; n + 127 is
  // that of `shifted`, from 1 to 253.
  constexpr float kShift = 0x1.8p+23f;
  const float share = __saturatef(fmaf(x, kLog2E / 252.0f, 0.5f));
  const float shifted = __fmaf_rd(share, 252.0f, kShift + 1.0f);
  const float n = shifted - (kShift + 127.0f);
  const float r = fmaf(x, kLog2ELow, fmaf(x, kLog2E, -n));
  return Exp2(r) * __uint_as_float(__float_as_uint(shifted) << 23);
}

// e^x, and what follows of it, where all that is made of the result is rounded
// to 16 bits: within 2^-17 of itself, by a fraction of the instructions. The
// square of its root, for a power itself would be zero below 2^-126.
__device__ inline float ExpForHalf(float x) {
  const float root = Exp2(x * 0x1.715476p-1f);
  return root * root;
}

// e^x - 1 for x up to 0: 2^n * (e^r - 1) + (2^n - 1), |r| <= ln(2) / 2, with a
// polynomial for e^r - 1. 0.9 ulp.
__device__ inline float Expm1OfNegative(float x) {
  constexpr float kShift = 0x1.8p+23f + 127.0f;
  constexpr float kLn2 = 0x1.62e430p-1f;
  constexpr float kLn2Excess = 0x1.05c610p-29f;  // of kLn2 over log(2)
  constexpr float kCoefficients[] = {0x1.000000p-1f, 0x1.5554b0p-3f,
                                     0x1.555488p-5f, 0x1.1227aap-7f,
                                     0x1.6d988cp-10f};
  const float bounded = Maximum(x, -30.0f);
  const float shifted = fmaf(bounded, 0x1.715476p+0f, kShift);
  const float n = shifted - kShift;
  const float r = fmaf(n, kLn2Excess, fmaf(n, -kLn2, bounded));
  const float rest = fmaf(r * r, Polynomial(r, kCoefficients), r);
  const float scale = __uint_as_float(__float_as_uint(shifted) << 23);
  return fmaf(scale, rest, scale - 1.0f);
}

// log(1 + x) for x from 0 to 1.
__device__ inline float Log1pOfShare(float x) {
  constexpr float kCoefficients[] = {
      -0x1.ffffd6p-2f, 0x1.554e52p-2f,  -0x1.ff2e20p-3f,
      0x1.937f00p-3f,  -0x1.3ad748p-3f, 0x1.b6a32ap-4f,
      -0x1.da93a6p-5f, 0x1.4d45e0p-6f,  -0x1.b6cd9ap-9f};
  return fmaf(x * x, Polynomial(x, kCoefficients), x);
}

// log(x), not for denormals: of x = 2^n * m with m from 2/3 to 4/3,
// n * log(2) + log(m). 1.0 ulp.
__device__ inline float Log(float x) {
  constexpr float kCoefficients[] = {
      -0x1.000000p-1f, 0x1.555502p-2f,  -0x1.fffd72p-3f,
      0x1.99d1bep-3f,  -0x1.55cc5cp-3f, 0x1.1ec170p-3f,
      -0x1.eec6aep-4f, 0x1.1ec3bap-3f,  -0x1.108798p-3f};
  const unsigned bits = __float_as_uint(x);
  const unsigned exponent = (bits - 0x3f2aaaabu) & 0xff800000u;
  const float m = __uint_as_float(bits - exponent) - 1.0f;
  const float n = static_cast<float>(static_cast<int>(exponent)) * 0x1p-23f;
  const float log_m = fmaf(m * m, Polynomial(m, kCoefficients), m);
  const float result = fmaf(n, 0x1.62e430p-1f, log_m);
  const float infinity = __int_as_float(0x7f800000);
  const float of_others = x == 0.0f ? -infinity : __int_as_float(0x7fffffff);
  return x > 0.0f ? (x < infinity ? result : x) : of_others;
}

// What gelu makes of +infinity: itself, or NaN, as a norm makes of either.
enum class OfInfinity { kInfinity, kNaN };

// x times the normal distribution function, whose tail on the left of -|x| is
// 2^-p(|x|) with a polynomial p that rises beyond where it was fitted, 6; on
// the right it is 1 less the tail.
template <OfInfinity kOfInfinity, int kCount>
__device__ float GeluByPower(float x, const float (&p)[kCount]) {
  const float tail = Exp2(-Polynomial(fabsf(x), p));
  if (kOfInfinity == OfInfinity::kNaN) {
    return fmaf(-fabsf(x), tail, fmaxf(x, 0.0f));
  }
  return x * (x > 0.0f ? 1.0f - tail : tail);
}

// 1e-7 * max(1, |x|), and 3.6 ulp from -1 up.
template <OfInfinity kOfInfinity = OfInfinity::kInfinity>
__device__ float Gelu(float x) {
  constexpr float kCoefficients[] = {1.0f,
                                     0x1.26aed6p+0f,
                                     0x1.d63a70p-2f,
                                     0x1.ae13aep-5f,
                                     -0x1.cf732cp-8f,
                                     0x1.369556p-13f,
                                     0x1.76796cp-13f,
                                     -0x1.35e794p-15f,
                                     0x1.55cb9ep-19f};
  return GeluByPower<kOfInfinity>(x, kCoefficients);
}

// 2^-15 of it from -2.8 up, and 1e-7 * max(1, |x|) below. Neighbours have
// nearly the same error: of their distance it takes or adds 2e-5.
template <OfInfinity kOfInfinity = OfInfinity::kInfinity>
__device__ float GeluForHalf(float x) {
  constexpr float kCoefficients[] = {
      1.0f,           0x1.26987ep+0f,  0x1.d78438p-2f,
      0x1.a354dcp-5f, -0x1.bd3866p-8f, 0x1.c360fcp-12f};
  return GeluByPower<kOfInfinity>(x, kCoefficients);
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), by way of
// (1 + tanh(u)) / 2 = 1 / (1 + e^-2u). 2e-7 * max(1, |x|), and 4.3 ulp from -1
// up.
__device__ inline float GeluTanh(float x) {
  constexpr float kLinear = -0x1.26aec2p+1f;  // -2 * sqrt(2 / pi) * log2(e)
  constexpr float kCubic = kLinear * 0.044715f;
  const float exponent = x * fmaf(x * x, kCubic, kLinear);
  return x * Reciprocal(1.0f + Exp2(exponent));
}

// tanh(x) for |x| below 0.6, but for the sign of a zero
__device__ inline float TanhPolynomial(float x) {
  constexpr float kCoefficients[] = {-0x1.55553ep-2f, 0x1.1109c8p-3f,
                                     -0x1.b89be6p-5f, 0x1.54cb04p-6f,
                                     -0x1.82a6f6p-8f};
  return fmaf(x * x * x, Polynomial(x * x, kCoefficients), x);
}
__device__ inline float TanhOfSmall(float x) {
  return copysignf(TanhPolynomial(x), x);
}

// 1 / (1 + e^2x) of `scaled`, 2 * log2(e) * x: what tanh(x) is made of where
// small results need not be right to an ulp, nor zeros have a sign. The factor
// is in constants that the code in front of it has anyway.
__device__ inline float ShareOfScaled(float scaled) {
  return Reciprocal(1.0f + Exp2(scaled));
}

// tanh(x) = 1 - 2 / (1 + e^2x). 3.1e-7.
__device__ inline float TanhOfScaled(float scaled) {
  return fmaf(-2.0f, ShareOfScaled(scaled), 1.0f);
}
__device__ inline float TanhBesideOne(float x) {
  return TanhOfScaled(x * 0x1.715476p+1f);
}
// factor * (tanh(x) - 1). 3.5e-7 of the factor.
__device__ inline float TanhLessOne(float scaled, float factor) {
  return ShareOfScaled(scaled) * (-2.0f * factor);
}

// tanh(x), by a polynomial below 0.6. 2.3 ulp, 1.4e-7.
__device__ inline float Tanh(float x) {
  const float near = TanhPolynomial(x);
  return copysignf(fabsf(x) < 0.6f ? near : TanhBesideOne(fabsf(x)), x);
}

// The same with 2^-16 of it at most: the first terms of its series below 2^-4.
__device__ inline float TanhForHalf(float x) {
  const float near = x * fmaf(x * x, -1.0f / 3.0f, 1.0f);
  return fabsf(x) < 0x1p-4f ? near : TanhBesideOne(x);
}

// 1 / (1 + e^-x). 5.0 ulp. Where x can be anything by way of 2^-24 / (2^-24 +
// 2^-24 * e^-x), with e^-x as Exp has it and n from -102 to 150: nothing on the
// way is below the normal numbers.
template <Reach kReach = Reach::kAny>
__device__ float Sigmoid(float x) {
  static_assert(kReach != Reach::kBounded, "That would be less exact.");
  if (kReach == Reach::kSmall) return Reciprocal(1.0f + Exp<kReach>(-x));
  constexpr float kLog2E = 0x1.715476p+0f;
  constexpr float kLog2ELow = 0x1.4ae0c0p-26f;
  constexpr float kShift = 0x1.8p+23f;
  const float share = __saturatef(fmaf(x, -kLog2E / 252.0f, 102.0f / 252.0f));
  const float shifted = __fmaf_rd(share, 252.0f, kShift + 1.0f);
  const float n = shifted - (kShift + 103.0f);
  const float r = fmaf(x, -kLog2ELow, fmaf(x, -kLog2E, -n));
  const float scale = __uint_as_float(__float_as_uint(shifted) << 23);
  return 0x1p-24f * Reciprocal(fmaf(Exp2(r), scale, 0x1p-24f));
}

// x * sigmoid(x)
template <Reach kReach = Reach::kAny>
__device__ float Silu(float x) {
  return x * Sigmoid<kReach>(x);
}

// With 2^-12 times the root of e^-x.
__device__ inline float SigmoidForHalf(float x) {
  const float root = Exp2(fmaf(x, -0x1.715476p-1f, -12.0f));
  return 0x1p-24f * Reciprocal(fmaf(root, root, 0x1p-24f));
}
__device__ inline float SiluForHalf(float x) { return x * SigmoidForHalf(x); }

// min(max(x + 3, 0), 6) / 6. 1.4 ulp.
template <Bounds kBounds = Bounds::kBoth>
__device__ float Hardsigmoid(float x) {
  return Clamp<kBounds>(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f);
}
// The same for x from -2 to 3, where x / 6 + 1 / 2 does not cancel. 1.0 ulp.
__device__ inline float HardsigmoidInside(float x) {
  return fmaf(x, 1.0f / 6.0f, 0.5f);
}

// x * min(max(x + 3, 0), 6) / 6. 2.2 ulp.
template <Bounds kBounds = Bounds::kBoth>
__device__ float Hardswish(float x) {
  return x * Clamp<kBounds>(x + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f);
}
// The same for x from -2 to 3, times a factor that the compiler knows. 1.5 ulp.
__device__ inline float HardswishInside(float x, float factor) {
  return x * fmaf(x, factor * (1.0f / 6.0f), factor * 0.5f);
}
__device__ inline float HardswishInside(float x) {
  return HardswishInside(x, 1.0f);
}

// factor * (hardswish(tanh(x)) - 2/3) of `scaled`, 2 * log2(e) * x. With the
// share r = 1 / (1 + e^2x), tanh is 1 - 2r and t * (t + 3) / 6 is
// (2 - 5r + 2r^2) / 3. Of the power's error, 1.7e-7, r (1 - r) (5 - 4r) / 3 is
// left, at most 0.27; of those of the sum and its reciprocal, 1.8e-7 together,
// r (5 - 4r) / 3, at most 0.52. With roundings 1.9e-7 of the factor.
__device__ inline float HardswishOfTanhLess(float scaled, float factor) {
  const float third = factor * (1.0f / 3.0f);
  const float share = ShareOfScaled(scaled);
  return share * fmaf(share, 2.0f * third, -5.0f * third);
}
__device__ inline float HardswishOfTanh(float scaled) {
  return HardswishOfTanhLess(scaled, 1.0f) + 2.0f / 3.0f;
}

// x * tanh(log(1 + e^x)) = x * m / (m + 2) with m = e^x * (e^x + 2); above 20
// the factor is 1. 6.2 ulp.
__device__ inline float MishOfPower(float x, float power) {
  const float m = power * (power + 2.0f);
  const float reciprocal = Reciprocal(m + 2.0f);
  return x * (m > 2.0f ? fmaf(-2.0f, reciprocal, 1.0f) : m * reciprocal);
}
template <Reach kReach = Reach::kAny>
__device__ float Mish(float x) {
  const float bounded = kReach == Reach::kSmall ? x : fminf(x, 20.0f);
  return MishOfPower(x, Exp<kReach>(bounded));
}
__device__ inline float MishForHalf(float x) {
  return MishOfPower(x, ExpForHalf(fminf(x, 20.0f)));
}

// log(1 + e^s) / beta with s = beta * x. The logarithm is
// max(s, 0) + log(1 + e^-|s|).
__device__ inline float SoftplusBelow(float x, float beta) {
  const float s = x * beta;
  const float log = Maximum(s, 0.0f) + Log1pOfShare(Exp(-fabsf(s)));
  return QuotientByConstant(log, beta);
}

// The same; x itself once s > threshold. Computed in any case, here and below:
// a branch would keep neighbours' instructions apart.
__device__ inline float Softplus(float x, float beta, float threshold) {
  const float below = SoftplusBelow(x, beta);
  return x * beta > threshold ? x : below;
}

// x if x > 0, else alpha * (e^x - 1)
__device__ inline float Elu(float x, float alpha) {
  const float below = alpha * Expm1OfNegative(x);
  return x > 0.0f ? x : below;
}

__device__ inline float Abs(float x) { return fabsf(x); }
__device__ inline float Neg(float x) { return -x; }
__device__ inline float Sqrt(float x) { return sqrtf(x); }

__device__ inline float Add(float a, float b) { return a + b; }
__device__ inline float Sub(float a, float b) { return a - b; }
__device__ inline float Mul(float a, float b) { return a * b; }
__device__ inline float Div(float a, float b) { return a / b; }

// What many numbers are divided by: b times `scale`, 1 but where 1 / b would
// overflow or be denormal, and its reciprocal. `value` is zero where there is
// nothing to correct.
struct Divisor {
  float value, reciprocal, scale;
};
__device__ inline Divisor DivisorOf(float b) {
  const float magnitude = fabsf(b);
  const float scale = magnitude < 0x1p-100f  ? 0x1p64f
                      : magnitude > 0x1p100f ? 0x1p-64f
                                             : 1.0f;
  const float scaled = b * scale;
  const bool is_finite = fabsf(scaled) < __int_as_float(0x7f800000);
  return {is_finite ? scaled : 0.0f, 1.0f / scaled, scale};
}

// a / b, rounded correctly but for denormals
__device__ inline float DivBy(float a, Divisor b) {
  const float quotient = a * b.reciprocal;
  const float better =
      fmaf(fmaf(-b.value, quotient, a), b.reciprocal, quotient);
  const bool is_finite = fabsf(quotient) < __int_as_float(0x7f800000);
  // What is added to a zero may take its sign.
  return (is_finite ? copysignf(better, quotient) : quotient) * b.scale;
}

// a / b to 1.5 ulp, where errors relative to it count from 16 bits on alone: it
// need not be 1 where a is b
__device__ inline float DivNearlyBy(float a, Divisor b) {
  return a * b.reciprocal * b.scale;
}

// (x - mean) * rstd * weight + bias. The difference comes first: it is exact
// for x near the mean, however large both are. The factor is the same
// throughout a channel, and there computed once.
__device__ inline float Normalize(float x, float mean, float rstd, float weight,
                                  float bias) {
  return (x - mean) * (rstd * weight) + bias;
}

// 1 / sqrt(variance + eps), within 2 ulp
__device__ inline float ReciprocalStd(float variance, float eps) {
  return rsqrtf(variance + eps);
}

// e^(x - max) / sum
__device__ inline float Softmax(float x, float max, float sum) {
  return Quotient(Exp(x - max), sum);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MATH_CUH_
