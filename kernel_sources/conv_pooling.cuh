// What poolings make of a window's values, the largest or the mean.
#ifndef KILN_KERNEL_SOURCES_CONV_POOLING_CUH_
#define KILN_KERNEL_SOURCES_CONV_POOLING_CUH_

#include "reducers.cuh"

namespace kiln {

// Of windows of kPoolH x kPoolW: Finish(Join(Join(Neutral(), a), b) ...).
template <typename Spec>
struct Pooling {
  // Of a channel's values, so that the largest is what is asked for.
  template <typename Channel>
  static __device__ float SignOf(const Channel& channel) {
    if constexpr (Spec::kPoolsMax) {
      return channel.sign;
    } else {
      return 1.0f;
    }
  }
  static __device__ float Neutral() {
    return Spec::kPoolsMax ? -Infinity() : 0.0f;
  }
  static __device__ float Join(float a, float b) {
    return Spec::kPoolsMax ? Maximum(a, b) : a + b;
  }
  static __device__ float Finish(float joined) {
    constexpr float kCount = Spec::kPoolH * Spec::kPoolW;
    return Spec::kPoolsMax ? joined : joined / kCount;
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_POOLING_CUH_
