// A store that is an instruction with a predicate instead of a branch around
// one: what stands before and after it may be interleaved, above all the loads
// of the next elements.
#ifndef KILN_KERNEL_SOURCES_STORE_IF_CUH_
#define KILN_KERNEL_SOURCES_STORE_IF_CUH_

#include "storage_types.cuh"

namespace kiln {

template <typename Index>
__device__ void StoreIf(bool condition, float* tensor, Index i, float value) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.f32 [%1], %2;}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i), "f"(value));
}

// Of Float16 and BFloat16.
template <typename T, typename Index>
__device__ void StoreIf(bool condition, T* tensor, Index i, float value) {
  T stored;
  FromFloat(value, &stored);
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %0, 0; @p st.global.b16 [%1], %2;}"
      :
      : "r"(static_cast<int>(condition)), "l"(tensor + i), "h"(stored.bits));
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_STORE_IF_CUH_
