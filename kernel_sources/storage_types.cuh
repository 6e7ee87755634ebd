// How tensor elements lie in memory. Arithmetic is f32 everywhere; these
// functions are the only places where a value changes its width.
//
//   const float x = kiln::Load(t.input, at.i);     // any storage type
//   kiln::Store(t.output, at.i, x);                // rounds to nearest even
//   const float y = kiln::Round<kiln::Float16>(x); // an explicit cast
#ifndef KILN_KERNEL_SOURCES_STORAGE_TYPES_CUH_
#define KILN_KERNEL_SOURCES_STORAGE_TYPES_CUH_

namespace kiln {

// IEEE 754 binary16.
struct Float16 {
  unsigned short bits;
};

// The upper half of a binary32.
struct BFloat16 {
  unsigned short bits;
};

__device__ inline float ToFloat(float value) { return value; }

__device__ inline float ToFloat(Float16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}

__device__ inline float ToFloat(BFloat16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

__device__ inline void FromFloat(float value, float* result) {
  *result = value;
}

__device__ inline void FromFloat(float value, Float16* result) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result->bits) : "f"(value));
}

__device__ inline void FromFloat(float value, BFloat16* result) {
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result->bits) : "f"(value));
#else
  // Before sm_80 there is no instruction. Adding 0x7fff plus the lowest kept
  // bit carries into it exactly when nearest-even rounds up; a NaN would carry
  // into the exponent, so it is replaced by the canonical one.
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  result->bits = static_cast<unsigned short>(value == value ? rounded : 0x7fff);
#endif
}

// Two numbers in one word, each rounded to the last argument's type as
// FromFloat does; `first` is in the lower half.
#if __CUDA_ARCH__ >= 800
__device__ inline unsigned RoundedPair(float first, float second, Float16) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

__device__ inline unsigned RoundedPair(float first, float second, BFloat16) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
#else
template <typename T>
__device__ unsigned RoundedPair(float first, float second, T) {
  T lower, upper;
  FromFloat(first, &lower);
  FromFloat(second, &upper);
  return static_cast<unsigned>(upper.bits) << 16 | lower.bits;
}
#endif

template <typename T, typename Index>
__device__ float Load(const T* tensor, Index i) {
  return ToFloat(tensor[i]);
}

// The same of what nobody reads again: caches give it up first.
template <typename T, typename Index>
__device__ float LoadOnce(const T* tensor, Index i) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return __ldcs(tensor + i);
  } else {
    return ToFloat(T{__ldcs(&tensor[i].bits)});
  }
}

template <typename T, typename Index>
__device__ void Store(T* tensor, Index i, float value) {
  FromFloat(value, &tensor[i]);
}

// The value of type T nearest to `value`.
template <typename T>
__device__ float Round(float value) {
  T rounded;
  FromFloat(value, &rounded);
  return ToFloat(rounded);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_STORAGE_TYPES_CUH_
