// Predicated stores (store_if.cuh) of two or four neighbours in memory at once,
// and loads of two.
#ifndef KILN_KERNEL_SOURCES_STORE_PAIRS_CUH_
#define KILN_KERNEL_SOURCES_STORE_PAIRS_CUH_

#include "store_if.cuh"

namespace kiln {

// Numbers that become neighbours in memory.
template <int kCount>
struct Neighbours {
  float of[kCount];
};

// tensor + i is aligned to the size of all.
template <typename Index>
__device__ void StoreIf(bool condition, float* tensor, Index i,
                        const Neighbours<2>& values) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0;"
      "@p st.global.v2.f32 [%1], {%2, %3};}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i), "f"(values.of[0]),
        "f"(values.of[1]));
}
template <typename Index>
__device__ void StoreIf(bool condition, float* tensor, Index i,
                        const Neighbours<4>& values) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0;"
      "@p st.global.v4.f32 [%1], {%2, %3, %4, %5};}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i), "f"(values.of[0]),
        "f"(values.of[1]), "f"(values.of[2]), "f"(values.of[3]));
}

template <typename T, typename Index>
__device__ void StoreIf(bool condition, T* tensor, Index i,
                        const Neighbours<2>& values) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.b32 [%1], %2;}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i),
        "r"(RoundedPair(values.of[0], values.of[1], T())));
}
template <typename T, typename Index>
__device__ void StoreIf(bool condition, T* tensor, Index i,
                        const Neighbours<4>& values) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.v2.b32 [%1], {%2, "
      "%3};}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i),
        "r"(RoundedPair(values.of[0], values.of[1], T())),
        "r"(RoundedPair(values.of[2], values.of[3], T())));
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

// Whether so many neighbours of these tensors' elements are aligned.
template <int kCount, typename... T>
__device__ bool AreAligned(const T*... tensors) {
  return (
      (reinterpret_cast<unsigned long long>(tensors) % (kCount * sizeof(T)) ==
       0) &
      ...);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_STORE_PAIRS_CUH_
