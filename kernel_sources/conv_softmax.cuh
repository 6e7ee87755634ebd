// Softmax over the channels of a convolution tile, from registers, and
// pointwise ops behind it:
//   Spec::Element(t, at, share, inside)
// of each element, once for each. The block has all channels of a pixel.
#ifndef KILN_KERNEL_SOURCES_CONV_SOFTMAX_CUH_
#define KILN_KERNEL_SOURCES_CONV_SOFTMAX_CUH_

#include "conv_pixel_stage.cuh"
#include "conv_reduce.cuh"

namespace kiln {

template <typename Spec>
struct ConvTail<Spec, Tail::kSoftmax> {
  using Values = ChannelValues<Spec>;
  using Index = typename Spec::Index;
  static_assert(Spec::kImages == 1, "All warps share its parts.");
  static_assert(ConvTile<Spec>::kChannelBlocks == 1 && Spec::kGroups == 1,
                "One block has all channels.");

  template <typename Scales, typename PassTurn = TurnPassed>
  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       const Scales& scales, float* scratch,
                       const PassTurn& pass_turn = PassTurn()) {
    Values values(t, channels, block, tile, warp, sums, scales, pass_turn);
    float factors[Values::kRows];  // from a power to its share
    float largest[Values::kRows];
#pragma unroll
    for (int row = 0; row < Values::kRows; ++row) {
      factors[row] = TakePowers(values.x[row], &largest[row]);
    }
    if constexpr (Spec::kWarpsN > 1) {
      MergeWarps(warp, largest, factors, reinterpret_cast<float2*>(scratch));
    } else {
#pragma unroll
      for (float& factor : factors) factor = 1.0f / factor;
    }
    StorePixels<Spec>(
        block, tile, warp, scratch + kPartsWords,
        [&](int row, int column) {
          return values.x[row][column] * factors[row];
        },
        [&](const Point<Index>& at, float share, bool inside) {
          Spec::Element(t, at, share, inside);
        });
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         const WarpTile<Spec>&, float*) {}

 private:
  static constexpr int kPixels = Spec::kTileH * Spec::kTileW;
  static constexpr int kPartsWords =
      Spec::kWarpsN > 1 ? Spec::kWarpsN* kPixels * 2 : 0;

  // Puts e^(x - largest) in the place of a pixel's values that this lane and
  // its three neighbours hold, and returns their sum. A NaN or +inf makes the
  // sum NaN; where all are -inf it is 0.
  static __device__ float TakePowers(float (&x)[Values::kColumns],
                                     float* largest) {
    const auto larger = [](float a, float b) { return fmaxf(a, b); };
    *largest = OverLanes(OfAll(x, larger), larger);
    const float base = *largest == -Infinity() ? 0.0f : *largest;
#pragma unroll
    for (float& power : x) power = PowerOf(power - base);
    return OverLanes(SumOf(x), Add);
  }

  // e^x for x up to 0. Its error grows with -x, but its share of the sum falls
  // faster.
  static __device__ float PowerOf(float x) { return Exp2(x * 0x1.715476p+0f); }

  // Of warps that have some channels each: from their sums to the factors. Of a
  // warp whose values are all -inf, largest - most is -inf; where those of all
  // warps are, NaN.
  static __device__ void MergeWarps(const WarpTile<Spec>& warp,
                                    const float (&largest)[Values::kRows],
                                    float (&sums)[Values::kRows],
                                    float2* parts) {
    const int warp_n = warp.first_fragment / Spec::kTilesN;
    ConvTile<Spec>::Sync();  // those of the tile before have been read
#pragma unroll
    for (int row = 0; row < Values::kRows; ++row) {
      if (warp.t != 0 || !warp.IsInTile(row / 2, row % 2)) continue;
      parts[warp_n * kPixels + warp.pixel(row / 2, row % 2)] =
          make_float2(largest[row], sums[row]);
    }
    ConvTile<Spec>::Sync();
#pragma unroll
    for (int row = 0; row < Values::kRows; ++row) {
      if (!warp.IsInTile(row / 2, row % 2)) continue;
      float2 all[Spec::kWarpsN];
      float most = -Infinity();
#pragma unroll
      for (int other = 0; other < Spec::kWarpsN; ++other) {
        all[other] = parts[other * kPixels + warp.pixel(row / 2, row % 2)];
        most = fmaxf(most, all[other].x);
      }
      float sum = 0.0f;
#pragma unroll
      for (const float2& part : all) sum += part.y * PowerOf(part.x - most);
      sums[row] = PowerOf(largest[row] - most) / sum;
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_SOFTMAX_CUH_
