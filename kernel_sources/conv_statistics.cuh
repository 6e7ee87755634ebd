// Statistics of group_norm, gathered tile by tile from a convolution.
#ifndef KILN_KERNEL_SOURCES_CONV_STATISTICS_CUH_
#define KILN_KERNEL_SOURCES_CONV_STATISTICS_CUH_

#include "conv_partials.cuh"
#include "conv_pixel_stage.cuh"
#include "conv_tail.cuh"
#include "conv_windows.cuh"

namespace kiln {

// Statistics of the groups of group_norm. A thread keeps them for each of its
// channels, or pair of channels where a group has an even number, over all
// tiles of the block; Finish merges them in a fixed order and leaves one state
// for each group that a block has channels of (LeavePartial).
template <typename Spec>
struct ConvTail<Spec, Tail::kMoments> {
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  static constexpr int kTogether = Spec::kChannelsOfState % 2 == 0 ? 2 : 1;
  static constexpr int kSlots = 2 * Spec::kTilesN / kTogether;
  static constexpr int kBlockSlots = Tile::kBlockChannels / kTogether;
  static constexpr int kStatesWords =  // of scratch, before what is staged
      Spec::kWarpsM * kBlockSlots * sizeof(Moments) / sizeof(float);

  PivotedMoments slots[kSlots];
  int pixels = 0;

  template <typename Scales>
  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       const Scales& scales, float* scratch) {
    int inside = 0;
    int first_row = -1;
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      if (!warp.IsInside(block, tile, row / 2, row % 2)) continue;
      if (inside == 0) first_row = row;
      ++inside;
    }
    if (pixels == 0)
      TakePivots(t, channels, block, tile, warp, sums, scales, first_row);
    pixels += inside;
    const typename Channels<Spec>::OfLane of_lane(channels, block.n,
                                                  warp.channel());
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool is_inside) {
          float& x = sums.d[m][4 * j + i];
          x = Spec::Read(t, at, x, scales(j, i), is_inside, of_lane(j, i, at));
          PivotedMoments& slot = slots[(2 * j + i % 2) / kTogether];
          slot.AddDifferenceIf(is_inside, x - slot.pivot);
        });
    if constexpr (Spec::kStagesResults) {
      PixelStage<Spec>(block, tile, warp, scratch + kStatesWords)
          .ForEach([&](int row, int column) { return sums.At(row, column); },
                   [&](const Point<Index>& at, float value, bool is_inside) {
                     Spec::StoreRead(t, at, value, is_inside);
                   });
    }
    if constexpr (Spec::kPoolsEarly) {
      PoolEarly<Spec>(t, channels, block, tile, warp, sums, scratch);
    }
  }

  // The values of row `row`, which is the first that is inside.
  template <typename Scales>
  __device__ void TakePivots(const typename Spec::Tensors& t,
                             const Channels<Spec>& channels,
                             const ConvBlock<Spec>& block, int tile,
                             const WarpTile<Spec>& warp, Sums<Spec>& sums,
                             const Scales& scales, int row) {
    const typename Channels<Spec>::OfLane of_lane(channels, block.n,
                                                  warp.channel());
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool) {
          if (i % kTogether != 0 || 2 * m + i / 2 != row) return;
          slots[(2 * j + i % 2) / kTogether].pivot =
              Spec::Read(t, at, sums.d[m][4 * j + i], scales(j, i), false,
                         of_lane(j, i, at));
        });
  }

  __device__ void Finish(const typename Spec::Tensors& t,
                         const ConvBlock<Spec>& block,
                         const WarpTile<Spec>& warp, float* scratch) {
    Moments(*states)[kBlockSlots] =
        reinterpret_cast<Moments(*)[kBlockSlots]>(scratch);
    // A lane that has taken values lends its pivots to those with the same t.
    const unsigned lanes =
        __ballot_sync(~0u, pixels > 0) & (0x11111111u << warp.t);
    const int leader = lanes == 0 ? warp.lane : __ffs(lanes) - 1;
    const float count = static_cast<float>(pixels * kTogether);
    // Lanes with the same t differ in the bits from the third on.
    const float total = SumOfLanes<32, 4>(count);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      PivotedMoments state = slots[slot];
      state.MoveTo(__shfl_sync(~0u, state.pivot, leader), count);
      state.sum = SumOfLanes<32, 4>(state.sum);
      state.squares = SumOfLanes<32, 4>(state.squares);
      const int column =
          kTogether == 2
              ? (warp.first_fragment + slot) * 4 + warp.t
              : (warp.first_fragment + slot / 2) * 8 + 2 * warp.t + slot % 2;
      if (warp.g == 0) states[warp.warp_m][column] = state.Get(total);
    }
    ConvTile<Spec>::Sync();
    LeavePartials<Spec, Spec::kWarpsM, kBlockSlots>(t, block, states);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_STATISTICS_CUH_
