// Predicated stores (store_if.cuh) of two neighbours in memory at once, and
// loads of two. Streams are stores of what caches are to give up first.
#ifndef KILN_KERNEL_SOURCES_STORE_PAIRS_CUH_
#define KILN_KERNEL_SOURCES_STORE_PAIRS_CUH_

#include "store_if.cuh"

namespace kiln {

// tensor + i is aligned to the size of both.
template <typename Index>
__device__ void StoreIf(bool condition, float* tensor, Index i, float2 values) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0;"
      "@p st.global.v2.f32 [%1], {%2, %3};}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i), "f"(values.x),
        "f"(values.y));
}

template <typename T, typename Index>
__device__ void StoreIf(bool condition, T* tensor, Index i, float2 values) {
  T stored[2];
  FromFloat(values.x, &stored[0]);
  FromFloat(values.y, &stored[1]);
  const unsigned both = stored[1].bits << 16 | stored[0].bits;
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.b32 [%1], %2;}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i), "r"(both));
}

template <typename Index>
__device__ void StreamIf(bool condition, float* tensor, Index i,
                         float2 values) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0;"
      "@p st.global.cs.v2.f32 [%1], {%2, %3};}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i), "f"(values.x),
        "f"(values.y));
}

template <typename T, typename Index>
__device__ void StreamIf(bool condition, T* tensor, Index i, float2 values) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.cs.b32 [%1], %2;}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i),
        "r"(RoundedPair(values.x, values.y, T())));
}

// Of one there is no such store: those are few.
template <typename T, typename Index>
__device__ void StreamIf(bool condition, T* tensor, Index i, float value) {
  StoreIf(condition, tensor, i, value);
}

// Two numbers as they are stored.
template <typename T>
struct PairOf {
  using Type = unsigned;  // the first in the lower half
};
template <>
struct PairOf<float> {
  using Type = float2;
};

// Two where `read`, else zeros; where kAligned by one access.
template <bool kAligned, typename Index>
__device__ float2 LoadPairIf(bool read, const float* tensor, Index i) {
  if constexpr (kAligned) {
    return read ? __ldg(reinterpret_cast<const float2*>(tensor + i))
                : make_float2(0.0f, 0.0f);
  } else {
    return make_float2(read ? tensor[i] : 0.0f, read ? tensor[i + 1] : 0.0f);
  }
}
template <bool kAligned, typename T, typename Index>
__device__ unsigned LoadPairIf(bool read, const T* tensor, Index i) {
  if constexpr (kAligned) {
    return read ? __ldg(reinterpret_cast<const unsigned*>(tensor + i)) : 0u;
  } else {
    const unsigned first = read ? tensor[i].bits : 0u;
    return first |
           (read ? static_cast<unsigned>(tensor[i + 1].bits) << 16 : 0u);
  }
}

// One of such two.
template <typename T, int kHalf>
__device__ float OfPair(float2 pair) {
  return kHalf == 0 ? pair.x : pair.y;
}
template <typename T, int kHalf>
__device__ float OfPair(unsigned pair) {
  T number;
  number.bits = static_cast<unsigned short>(pair >> kHalf * 16);
  return ToFloat(number);
}

// Whether pairs of these tensors' elements are aligned.
template <typename... T>
__device__ bool ArePairsAligned(const T*... tensors) {
  return (
      (reinterpret_cast<unsigned long long>(tensors) % (2 * sizeof(T)) == 0) &
      ...);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_STORE_PAIRS_CUH_
