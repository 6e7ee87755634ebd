// The inner product over the channels of one filter tap: what convolution and
// transposed convolution share.
//
//   sum += kiln::ChannelDot<kChannels, kPlane, kTaps>(t.input, i, t.weight, k);
//
// Four running sums, added in pairs at the end: chains of additions are a
// quarter as long, so the error against double is below that of one chain,
// and four products are in flight.
#ifndef KILN_KERNEL_SOURCES_CHANNEL_DOT_CUH_
#define KILN_KERNEL_SOURCES_CHANNEL_DOT_CUH_

#include "storage_types.cuh"

namespace kiln {

// Sum over channel of input[i + channel * kInputStride] *
// weight[k + channel * kWeightStride].
template <int kChannels, long long kInputStride, long long kWeightStride,
          typename Input, typename Weight, typename Index>
__device__ float ChannelDot(const Input* input, Index i, const Weight* weight,
                            Index k) {
  constexpr int kChains = 4;
  constexpr int kWhole = kChannels / kChains * kChains;
  float sums[kChains] = {};

#pragma unroll 1
  for (int channel = 0; channel < kWhole; channel += kChains) {
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = fmaf(Load(input, i), Load(weight, k), sums[chain]);
      i += static_cast<Index>(kInputStride);
      k += static_cast<Index>(kWeightStride);
    }
  }
#pragma unroll
  for (int chain = 0; chain < kChannels - kWhole; ++chain) {
    sums[chain] = fmaf(Load(input, i), Load(weight, k), sums[chain]);
    i += static_cast<Index>(kInputStride);
    k += static_cast<Index>(kWeightStride);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CHANNEL_DOT_CUH_
