// output[n,oc,y,x] = bias[oc] + sum over ic, ky, kx of
//   input[n, ic, (y + padding - ky * dilation) / stride, ...] *
//   weight[ic, oc, ky, kx]
// over the taps where the division leaves no remainder.
//
// input N x C x H x W, weight C x OC/groups x KH x KW, output N x OC x OH x OW,
// all contiguous, any storage type. The gradient of conv2d written as a
// gather: one thread per output element, no atomics, one fixed order.
#include "channel_dot.cuh"
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

// The sum without bias for output element `at`.
template <typename Spec, typename Index>
__device__ float ConvTranspose2dAt(const typename Spec::Tensors& t,
                                   Point<Index> at) {
  using Input = typename Spec::Input;
  constexpr int kGroupChannels = Input::kC / Spec::kGroups;
  constexpr int kGroupOutputs = Spec::Output::kC / Spec::kGroups;
  constexpr Index kTaps = Spec::kKernelH * Spec::kKernelW;
  constexpr Index kPlane = Input::kH * Input::kW;
  constexpr Index kFilters = kGroupOutputs * kTaps;

  const Index first_channel = at.c / kGroupOutputs * kGroupChannels;
  const Index plane = (at.n * Input::kC + first_channel) * kPlane;
  const Index filter = first_channel * kFilters + at.c % kGroupOutputs * kTaps;

  float sum = 0.0f;
#pragma unroll 1
  for (int ky = 0; ky < Spec::kKernelH; ++ky) {
    const Index y = at.h + Spec::kPaddingH - ky * Spec::kDilationH;
    const Index h = y / Spec::kStrideH;
    if (y < 0 || y % Spec::kStrideH != 0 || h >= Input::kH) continue;
#pragma unroll 1
    for (int kx = 0; kx < Spec::kKernelW; ++kx) {
      const Index x = at.w + Spec::kPaddingW - kx * Spec::kDilationW;
      const Index w = x / Spec::kStrideW;
      if (x < 0 || x % Spec::kStrideW != 0 || w >= Input::kW) continue;
      sum += ChannelDot<kGroupChannels, kPlane, kFilters>(
          t.input, plane + h * Input::kW + w, t.weight,
          filter + ky * Spec::kKernelW + kx);
    }
  }
  return sum;
}

template <typename Spec>
__device__ void ConvTranspose2d(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  constexpr long long kCount = kNumElements<typename Spec::Output>;
  static_assert(Spec::Input::kC % Spec::kGroups == 0 &&
                    Spec::Output::kC % Spec::kGroups == 0,
                "Each group has equally many channels.");
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");

#pragma unroll 1
  for (Index i = GridStart<Index>(); i < kCount; i += GridStride<Index>()) {
    const auto at = PointOf<typename Spec::Output>(i);
    Spec::Element(t, at, ConvTranspose2dAt<Spec>(t, at));
  }
}

}  // namespace kiln
