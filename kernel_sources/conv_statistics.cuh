// Statistics of group_norm, gathered tile by tile from a convolution.
#ifndef KILN_KERNEL_SOURCES_CONV_STATISTICS_CUH_
#define KILN_KERNEL_SOURCES_CONV_STATISTICS_CUH_

#include "conv_tail.cuh"
#include "conv_windows.cuh"
#include "reducers.cuh"

namespace kiln {

__device__ inline Moments FromLane(const Moments& mine, int mask) {
  Moments other;
  other.count = __shfl_xor_sync(~0u, mine.count, mask);
  other.mean = __shfl_xor_sync(~0u, mine.mean, mask);
  other.m2 = __shfl_xor_sync(~0u, mine.m2, mask);
  return other;
}

// Sums of differences from a pivot, the first value taken: as exact as two
// passes, because the pivot is within a few deviations of the mean.
struct PivotedMoments {
  float pivot = 0.0f, sum = 0.0f, squares = 0.0f;

  __device__ void Add(float x) {
    const float difference = x - pivot;
    sum += difference;
    squares = fmaf(difference, difference, squares);
  }
  // The same `count` values about another pivot.
  __device__ void MoveTo(float other, float count) {
    const float shift = pivot - other;
    squares = fmaf(shift, fmaf(shift, count, 2.0f * sum), squares);
    sum = fmaf(shift, count, sum);
    pivot = other;
  }
  __device__ Moments Get(float count) const {
    Moments moments;
    if (count == 0.0f) return moments;
    const float mean = __fdividef(sum, count);
    moments.count = count;
    moments.mean = pivot + mean;
    moments.m2 = Maximum(fmaf(-mean, sum, squares), 0.0f);
    return moments;
  }
};

// The sum over the eight lanes with the same t.
template <typename T>
__device__ T OverRows(T x) {
#pragma unroll
  for (int mask = 4; mask < 32; mask *= 2) {
    x += __shfl_xor_sync(~0u, x, mask);
  }
  return x;
}

// Statistics of the groups of group_norm. A thread keeps them for each of its
// channels, or pair of channels where a group has an even number, over all
// tiles of the block; Finish merges them in a fixed order and leaves one state
// for each group and block in t.partials.
template <typename Spec>
struct ConvTail<Spec, Tail::kMoments> {
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  static constexpr int kTogether = Spec::kGroupChannels % 2 == 0 ? 2 : 1;
  static constexpr int kSlots = 2 * Spec::kTilesN / kTogether;
  static constexpr int kBlockSlots = Tile::kBlockChannels / kTogether;

  PivotedMoments slots[kSlots];
  int pixels = 0;

  __device__ void Take(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       float* scratch) {
    int inside = 0;
    int first_row = -1;
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      if (!warp.IsInside(block, tile, row / 2, row % 2)) continue;
      if (inside == 0) first_row = row;
      ++inside;
    }
    if (pixels == 0) TakePivots(t, block, tile, warp, sums, first_row);
    pixels += inside;
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool is_inside) {
          float& x = sums.d[m][4 * j + i];
          x = Spec::Read(t, at, x, is_inside);
          PivotedMoments& slot = slots[(2 * j + i % 2) / kTogether];
          if (is_inside) slot.Add(x);
        });
    if constexpr (Spec::kHasExtremes) {
      PoolExtremes<Spec>(t, block, tile, warp, sums, scratch);
    }
  }

  // The values of row `row`, which is the first that is inside.
  __device__ void TakePivots(const typename Spec::Tensors& t,
                             const ConvBlock<Spec>& block, int tile,
                             const WarpTile<Spec>& warp, Sums<Spec>& sums,
                             int row) {
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool) {
          if (i % kTogether != 0 || 2 * m + i / 2 != row) return;
          slots[(2 * j + i % 2) / kTogether].pivot =
              Spec::Read(t, at, sums.d[m][4 * j + i], false);
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
    const float total = OverRows(count);
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      PivotedMoments state = slots[slot];
      state.MoveTo(__shfl_sync(~0u, state.pivot, leader), count);
      state.sum = OverRows(state.sum);
      state.squares = OverRows(state.squares);
      const int column =
          kTogether == 2
              ? (warp.first_fragment + slot) * 4 + warp.t
              : (warp.first_fragment + slot / 2) * 8 + 2 * warp.t + slot % 2;
      if (warp.g == 0) states[warp.warp_m][column] = state.Get(total);
    }
    __syncthreads();
    MergeGroups(t, block, states);
  }

 private:
  static constexpr int kGroups =
      Tile::kBlockChannels / Spec::kGroupChannels > 0
          ? Tile::kBlockChannels / Spec::kGroupChannels
          : 1;
  static constexpr int kGroupSlots = kBlockSlots / kGroups;

  // One warp for each group of the block.
  static __device__ void MergeGroups(const typename Spec::Tensors& t,
                                     const ConvBlock<Spec>& block,
                                     const Moments (*states)[kBlockSlots]) {
    const int lane = threadIdx.x % 32;
    const int first = block.first_channel() / Spec::kGroupChannels;
#pragma unroll 1
    for (int i = threadIdx.x / 32; i < kGroups; i += Tile::kThreads / 32) {
      Moments state;
#pragma unroll 1
      for (int k = lane; k < kGroupSlots * Spec::kWarpsM; k += 32) {
        state.Merge(states[k / kGroupSlots][i * kGroupSlots + k % kGroupSlots]);
      }
#pragma unroll
      for (int mask = 1; mask < 32; mask *= 2) {
        state.Merge(FromLane(state, mask));
      }
      if (lane == 0 && first + i < Spec::kNormGroups) {
        StorePartial(t, block, first + i, state);
      }
    }
  }

  static __device__ void StorePartial(const typename Spec::Tensors& t,
                                      const ConvBlock<Spec>& block, int group,
                                      const Moments& state) {
    constexpr int kBlocksPerGroup =
        Spec::kSplits / (Tile::kStrips * Tile::kTilesAcross);
    const int split =
        (block.channel_block % kBlocksPerGroup * Tile::kStrips + block.strip) *
            Tile::kTilesAcross +
        block.column;
    t.partials[(block.n * Spec::kNormGroups + group) * Spec::kSplits + split] =
        state;
  }
};

// From the partial states to the statistics: one warp for each group of each
// image.
template <typename Spec>
__device__ void MergePartials(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  const int lane = threadIdx.x;
  Moments state;
#pragma unroll 1
  for (int split = lane; split < Spec::kSplits; split += 32) {
    state.Merge(t.partials[blockIdx.x * Spec::kSplits + split]);
  }
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    state.Merge(FromLane(state, mask));
  }
  if (lane != 0) return;
  Spec::Element(
      t, PointOf<typename Spec::TailOutput>(static_cast<Index>(blockIdx.x)),
      state);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_STATISTICS_CUH_
