// output[n,oc,y,x] = bias[oc] + sum over ic, ky, kx of
//   input[n, ic, y * stride + ky * dilation - padding, ...] *
//   weight[oc, ic, ky, kx]
//
// input N x C x H x W, weight OC x C/groups x KH x KW, output N x OC x OH x OW,
// all contiguous, any storage type. One thread per output element; positions
// in the padding contribute nothing. Of Spec::kWrapsRows, rows are parts of
// one; of Spec::kColumnsApart, as many output channels are columns of one
// filter, OC / kColumnsApart x C x KH x kColumnsApart.
#include "channel_dot.cuh"
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

// The sum without bias for output element `at`.
template <typename Spec, typename Index>
__device__ float Conv2dAt(const typename Spec::Tensors& t, Point<Index> at) {
  using Input = typename Spec::Input;
  constexpr int kGroupChannels = Input::kC / Spec::kGroups;
  constexpr int kGroupOutputs = Spec::Output::kC / Spec::kGroups;
  constexpr Index kApart = Spec::kColumnsApart;
  constexpr Index kTaps = Spec::kKernelH * Spec::kKernelW * kApart;
  constexpr Index kPlane = Input::kH * Input::kW;

  const Index first_channel = at.c / kGroupOutputs * kGroupChannels;
  const Index plane = (at.n * Input::kC + first_channel) * kPlane;
  const Index filter = at.c / kApart * kGroupChannels * kTaps + at.c % kApart;
  const Index top = at.h * Spec::kStrideH - Spec::kPaddingH;
  const Index left = at.w * Spec::kStrideW - Spec::kPaddingW;

  float sum = 0.0f;
#pragma unroll 1
  for (int ky = 0; ky < Spec::kKernelH; ++ky) {
    const Index h = top + ky * Spec::kDilationH;
    if (h < 0 || h >= Input::kH) continue;
#pragma unroll 1
    for (int kx = 0; kx < Spec::kKernelW; ++kx) {
      const Index w = left + kx * Spec::kDilationW;
      if (Spec::kWrapsRows) {
        const Index along = h * Input::kW + w;
        if (along < 0 || along >= kPlane) continue;
      } else if (w < 0 || w >= Input::kW) {
        continue;
      }
      sum += ChannelDot<kGroupChannels, kPlane, kTaps>(
          t.input, plane + h * Input::kW + w, t.weight,
          filter + (ky * Spec::kKernelW + kx) * kApart);
    }
  }
  return sum;
}

template <typename Spec>
__device__ void Conv2d(const typename Spec::Tensors& t) {
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
    Spec::Element(t, at, Conv2dAt<Spec>(t, at));
  }
}

}  // namespace kiln
