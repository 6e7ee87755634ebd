// Operands of conv_wgmma.cu: numbers of f32, or of 16 bits where they are
// scaled all the same, as one or two numbers of 16 bits.
//
// A number x is scaled by a power of two 2^e and rounded to binary16, x1; where
// it has two parts, what is left is rounded again, x2: 22 bits of the 24, as
// x 2^e = x1 + x2 to 2^-22 of it. TF32 has the 11 bits of binary16, so one part
// is as exact as TF32. The scale is chosen so that the largest magnitude lies
// between kFewest and kMost: numbers 2^-18 times the largest still have
// their bits, smaller ones an error below 2^-29 of the largest. (Ootomo and
// Yokota, "Recovering single precision accuracy from tensor cores", 2022, have
// the splitting.)
#ifndef KILN_KERNEL_SOURCES_CONV_HALVES_CUH_
#define KILN_KERNEL_SOURCES_CONV_HALVES_CUH_

#include "storage_types.cuh"

namespace kiln {

constexpr float kFewest = 16.0f;
constexpr float kMost = 32768.0f;
constexpr int kWantedExponent = 9;  // of the largest, after scaling
constexpr int kLargestExponent = 126;
constexpr float kLeastHalf = 0x1p-24f;  // of binary16, above zero

constexpr unsigned kInfinityBits = 0x7f800000;

// The magnitude's bits, which are ordered like magnitudes; those of NaNs are
// above infinity's.
__device__ inline unsigned MagnitudeBits(float x) {
  return __float_as_uint(x) & 0x7fffffff;
}

// 2^exponent, for exponents of normal numbers.
__device__ inline float PowerOfTwo(int exponent) {
  return __int_as_float((exponent + 127) << 23);
}

// One over a power of two that is no more than 2^126.
__device__ inline float InverseOfPower(float power) {
  return __uint_as_float(0x7f000000 - __float_as_uint(power));
}

// Of powers of two, clamped from 0 to 2^127: finite, as what it is multiplied
// by may be 0.
__device__ inline float ProductOfPowers(float a, float b) {
  return fminf(fmaxf(a * b, 0.0f), PowerOfTwo(127));
}

// The same of a / b: never 0, which would make NaNs of infinities.
__device__ inline float RatioOfPowers(float a, float b) {
  return fmaxf(__fdividef(a, b), PowerOfTwo(-126));
}

// The exponent e for numbers up to the finite magnitude `most`.
__device__ inline int ScaleExponent(unsigned most) {
  const int exponent = kWantedExponent - (static_cast<int>(most >> 23) - 127);
  return max(-kLargestExponent, min(exponent, kLargestExponent));
}

// A number that is not so small then that its half is zero unless it is: an
// infinity that meets it comes out as one.
__device__ inline float ScaledAboveZero(float x, float scale) {
  const float scaled = x * scale;
  if (x == 0.0f) return scaled;
  return fabsf(scaled) < kLeastHalf ? copysignf(kLeastHalf, x) : scaled;
}

// The value of one half of a packed binary16 pair.
template <int kHalf>
__device__ float HalfOf(unsigned packed) {
  float value;
  if constexpr (kHalf == 0) {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low;}"
        : "=f"(value)
        : "r"(packed));
  } else {
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high;}"
        : "=f"(value)
        : "r"(packed));
  }
  return value;
}

// What a pair of scaled numbers has behind the first part, `large`, rounded. An
// infinity or NaN has nothing.
__device__ inline float RestOf(float x, float large) {
  return MagnitudeBits(x) < kInfinityBits ? x - large : 0.0f;
}
__device__ inline unsigned RestsOf(float first, float second, unsigned large) {
  return RoundedPair(RestOf(first, HalfOf<0>(large)),
                     RestOf(second, HalfOf<1>(large)), Float16());
}

// Writes the kParts parts of eight scaled numbers, kStep units of 16 bytes
// apart. An infinity or NaN has no second part.
template <bool kIsBFloat16, int kParts>
__device__ void StoreParts(const float (&x)[8], uint4* to, int step) {
  const auto pair_of = [](float first, float second) {
    if constexpr (kIsBFloat16) return RoundedPair(first, second, BFloat16());
    return RoundedPair(first, second, Float16());
  };
  unsigned large[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) large[i] = pair_of(x[2 * i], x[2 * i + 1]);
  to[0] = make_uint4(large[0], large[1], large[2], large[3]);
  if constexpr (kParts == 2) {
    unsigned small[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      small[i] = pair_of(x[2 * i] - HalfOf<0>(large[i]),
                         x[2 * i + 1] - HalfOf<1>(large[i]));
    }
    to[step] = make_uint4(small[0], small[1], small[2], small[3]);
  }
}

// The parts of a finite scaled number, both of its sign, and neither zero
// unless it is: an infinity that meets them comes out as one. The second has 11
// bits of what is left behind 10 and more of the first.
__device__ inline float2 PartsOfOneSign(float x) {
  const float magnitude = fabsf(x);
  if (!(magnitude > 0.0f && magnitude < kMost)) return make_float2(x, 0.0f);
  const unsigned nearest = RoundedPair(magnitude, 0.0f, Float16());
  const bool is_more = HalfOf<0>(nearest) > magnitude;
  const float large =
      fmaxf(HalfOf<0>(is_more ? nearest - 1 : nearest), kLeastHalf);
  const float small = fmaxf(magnitude - large, kLeastHalf);
  return make_float2(copysignf(large, x), copysignf(small, x));
}

// As StoreParts, with parts of one sign; where there is one part, it is rounded
// to nearest.
template <int kParts>
__device__ void StorePartsOfOneSign(const float (&x)[8], uint4* to, int step) {
  float large[8];
  float small[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float2 parts = PartsOfOneSign(x[i]);
    const bool rounds = kParts == 1 && fabsf(x[i]) > fabsf(parts.x);
    large[i] = rounds ? x[i] : parts.x;
    small[i] = parts.y;
  }
  StoreParts<false, 1>(large, to, step);
  if constexpr (kParts == 2) StoreParts<false, 1>(small, to + step, step);
}

// The lower halves of eight words side by side, or the upper ones.
template <bool kUpper>
__device__ uint4 PackHalvesOf(const unsigned (&x)[8]) {
  unsigned pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pairs[i] = __byte_perm(x[2 * i], x[2 * i + 1], kUpper ? 0x7632 : 0x5410);
  }
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_HALVES_CUH_
