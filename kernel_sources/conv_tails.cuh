// What a convolution kernel does with its sums, tile by tile: Spec::kTail
// chooses. Each takes the sums through the plan's pointwise ops by
//   Spec::Element(t, at, sum, inside)     where the kernel ends with them,
//   float Spec::Read(t, at, sum, inside)  where something follows.
// Both store only where `inside`.
#ifndef KILN_KERNEL_SOURCES_CONV_TAILS_CUH_
#define KILN_KERNEL_SOURCES_CONV_TAILS_CUH_

#include "conv_warp.cuh"
#include "reducers.cuh"

namespace kiln {

enum class Tail {
  kStore,     // ends with pointwise ops
  kMoments,   // count, mean and squared differences of each normalised group
  kChannels,  // a reduction over all channels of a pixel
  kPool,      // windows that do not overlap
};

template <typename Spec, Tail kTail = Spec::kTail>
struct ConvTail;

template <typename Spec>
struct ConvTail<Spec, Tail::kStore> {
  using Index = typename Spec::Index;

  __device__ void Take(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums, float*) {
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool inside) {
          Spec::Element(t, at, sums.d[m][4 * j + i], inside);
        });
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         const WarpTile<Spec>&, float*) {}
};

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

// Windows of kPoolH x kPoolW that lie in the tile side by side. Eight channels
// of each warp at a time go through shared memory, where windows are gathered.
template <typename Spec, typename Pooled>
struct WindowStage {
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  static constexpr int kColumns = (Spec::kTileW + 3) / 4 * 4;
  static constexpr int kPixels = Spec::kTileH * kColumns;
  // 4 modulo 32: the lanes that store at once lie in different banks.
  static constexpr int kPitch = (kPixels + 27) / 32 * 32 + 4;
  static constexpr int kChannels = Spec::kWarpsN * 8;
  static constexpr int kDown = Spec::kTileH / Spec::kPoolH;
  static constexpr int kAcross = Spec::kTileW / Spec::kPoolW;

  // Lays down fragment `slice` of `values`.
  static __device__ void Store(const WarpTile<Spec>& warp,
                               const Sums<Spec>& values, int slice,
                               float* scratch) {
    const int warp_n = warp.first_fragment / Spec::kTilesN;
    float* const first = scratch + (warp_n * 8 + 2 * warp.t) * kPitch;
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      const int m = row / 2;
      const int half = row % 2;
      if (!warp.IsInTile(m, half)) continue;
      float* const to =
          first + warp.row(m, half) * kColumns + warp.column(m, half);
      to[0] = values.d[m][4 * slice + 2 * half];
      to[kPitch] = values.d[m][4 * slice + 2 * half + 1];
    }
  }

  // Calls visit(at, corner) for each whole window: its place in the result and
  // its first value.
  template <typename Visit>
  static __device__ void ForEach(const ConvBlock<Spec>& block, int tile,
                                 int slice, const float* scratch, Visit visit) {
#pragma unroll 1
    for (int i = threadIdx.x; i < kChannels * kDown * kAcross;
         i += Tile::kThreads) {
      const int x = i % kAcross;
      const int y = i / kAcross % kDown;
      const int channel = i / (kDown * kAcross);
      const int in_block =
          (channel / 8 * Spec::kTilesN + slice) * 8 + channel % 8;
      const int h = block.top(tile) / Spec::kPoolH + y;
      const int w = block.left() / Spec::kPoolW + x;
      if (h >= Pooled::kH || w >= Pooled::kW ||
          block.channel_block * Tile::kBlockChannels + in_block >=
              Tile::kOutputs) {
        continue;
      }
      visit(PointAt<Pooled, Index>(block.n, block.first_channel() + in_block, h,
                                   w),
            scratch + channel * kPitch + y * Spec::kPoolH * kColumns +
                x * Spec::kPoolW);
    }
  }

  // One row of a window, in one access where it is aligned.
  static __device__ void LoadRow(const float* corner, int y,
                                 float (&row)[Spec::kPoolW]) {
    const float* const from = corner + y * kColumns;
    if constexpr (Spec::kPoolW == 4) {
      const float4 four = *reinterpret_cast<const float4*>(from);
      row[0] = four.x;
      row[1] = four.y;
      row[2] = four.z;
      row[3] = four.w;
    } else if constexpr (Spec::kPoolW == 2) {
      const float2 two = *reinterpret_cast<const float2*>(from);
      row[0] = two.x;
      row[1] = two.y;
    } else {
#pragma unroll
      for (int x = 0; x < Spec::kPoolW; ++x) row[x] = from[x];
    }
  }
};

// Pooling of values that the plan has finished.
template <typename Spec>
struct ConvTail<Spec, Tail::kPool> {
  using Index = typename Spec::Index;
  using Stage = WindowStage<Spec, typename Spec::TailOutput>;

  __device__ void Take(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       float* scratch) {
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool inside) {
          float& value = sums.d[m][4 * j + i];
          value = Spec::Read(t, at, value, inside);
        });
#pragma unroll
    for (int slice = 0; slice < Spec::kTilesN; ++slice) {
      Stage::Store(warp, sums, slice, scratch);
      __syncthreads();
      Stage::ForEach(block, tile, slice, scratch,
                     [&](const Point<Index>& at, const float* corner) {
                       Spec::Element(t, at, Window(corner));
                     });
      __syncthreads();
    }
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         const WarpTile<Spec>&, float*) {}

 private:
  static __device__ float Window(const float* corner) {
    float result = Spec::kPoolsMax ? -Infinity() : 0.0f;
#pragma unroll 1
    for (int y = 0; y < Spec::kPoolH; ++y) {
      float row[Spec::kPoolW];
      Stage::LoadRow(corner, y, row);
#pragma unroll
      for (int x = 0; x < Spec::kPoolW; ++x) {
        result = Spec::kPoolsMax ? Maximum(result, row[x]) : result + row[x];
      }
    }
    return Spec::kPoolsMax
               ? result
               : result / static_cast<float>(Spec::kPoolH * Spec::kPoolW);
  }
};

// The largest and the smallest value of each window of `values`.
template <typename Spec>
__device__ void PoolExtremes(const typename Spec::Tensors& t,
                             const ConvBlock<Spec>& block, int tile,
                             const WarpTile<Spec>& warp,
                             const Sums<Spec>& values, float* scratch) {
  using Index = typename Spec::Index;
  using Stage = WindowStage<Spec, typename Spec::Windows>;
#pragma unroll
  for (int slice = 0; slice < Spec::kTilesN; ++slice) {
    Stage::Store(warp, values, slice, scratch);
    __syncthreads();
    Stage::ForEach(block, tile, slice, scratch,
                   [&](const Point<Index>& at, const float* corner) {
                     float largest = -Infinity();
                     float smallest = Infinity();
#pragma unroll
                     for (int y = 0; y < Spec::kPoolH; ++y) {
                       float row[Spec::kPoolW];
                       Stage::LoadRow(corner, y, row);
#pragma unroll
                       for (int x = 0; x < Spec::kPoolW; ++x) {
                         largest = Maximum(largest, row[x]);
                         smallest = Minimum(smallest, row[x]);
                       }
                     }
                     Spec::StoreExtremes(t, at, largest, smallest);
                   });
    __syncthreads();
  }
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

  // One thread for each group of the block.
  static __device__ void MergeGroups(const typename Spec::Tensors& t,
                                     const ConvBlock<Spec>& block,
                                     const Moments (*states)[kBlockSlots]) {
    const int group = block.first_channel() / Spec::kGroupChannels +
                      static_cast<int>(threadIdx.x);
    if (threadIdx.x >= kGroups || group >= Spec::kNormGroups) return;
    Moments state;
#pragma unroll 1
    for (int slot = 0; slot < kGroupSlots; ++slot) {
#pragma unroll 1
      for (int warp = 0; warp < Spec::kWarpsM; ++warp) {
        state.Merge(states[warp][threadIdx.x * kGroupSlots + slot]);
      }
    }
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

// The maximum over the four lanes that share a pixel, and the sum.
template <typename Combine>
__device__ float OverLanes(float x, Combine combine) {
  x = combine(x, __shfl_xor_sync(~0u, x, 1));
  return combine(x, __shfl_xor_sync(~0u, x, 2));
}

// Reduces the values of one pixel that this lane and its three neighbours
// hold. Values that are no channels have weight 0.
template <int kCount>
__device__ void ReduceValues(Amax* state, const float (&x)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) state->Add(x[i]);
  state->largest = OverLanes(state->largest, Maximum);
}

template <int kCount>
__device__ void ReduceValues(Amin* state, const float (&x)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) state->Add(x[i]);
  state->smallest = OverLanes(state->smallest, Minimum);
}

template <int kCount>
__device__ void ReduceValues(Sum* state, const float (&x)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) state->Add(x[i]);
#pragma unroll
  for (int mask = 1; mask < 4; mask *= 2) {
    Sum other;
    other.sum = __shfl_xor_sync(~0u, state->sum, mask);
    other.error = __shfl_xor_sync(~0u, state->error, mask);
    state->Merge(other);
  }
}

// Finds the largest first, so that each value needs one exponential. An
// infinite one would make differences NaN; it is replaced by 0, where the
// exponentials are 0 or infinite as they should be. An error of the exponential
// grows with the difference, but its share of the sum falls faster: the plain
// power of two is right to an ulp of the sum.
template <int kCount>
__device__ void ReduceValues(LogSumExp* state, const float (&x)[kCount]) {
  constexpr float kLog2E = 0x1.715476p+0f;
  Amax most;
  ReduceValues(&most, x);
  state->largest = fabsf(most.largest) == Infinity() ? 0.0f : most.largest;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    sum += Exp2((x[i] - state->largest) * kLog2E);
  }
  state->scaled.sum = OverLanes(sum, Add);
}

// A reduction over the channels of a pixel, all of which the block has. The
// four lanes that share a pixel end with the same state; where several warps
// have channels of it, their states meet in shared memory.
template <typename Spec>
struct ConvTail<Spec, Tail::kChannels> {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Reducer = typename Spec::Reducer;
  static constexpr int kPixels = Spec::kTileH * Spec::kTileW;
  static_assert(ConvTile<Spec>::kChannelBlocks == 1 && Spec::kGroups == 1,
                "One block has all channels.");

  __device__ void Take(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       float* scratch) {
    constexpr int kRows = 2 * Spec::kTilesM;
    constexpr int kColumns = 2 * Spec::kTilesN;
    float x[kRows][kColumns];
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool inside) {
          const float value = Spec::Read(t, at, sums.d[m][4 * j + i], inside);
          x[2 * m + i / 2][2 * j + i % 2] = inside ? value : Spec::Neutral();
        });
    Reducer states[kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row) ReduceValues(&states[row], x[row]);
    if constexpr (Spec::kWarpsN > 1) MergeWarps(warp, states, scratch);
    if (warp.t != 0 || warp.first_fragment != 0) return;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (!warp.IsInside(block, tile, row / 2, row % 2)) continue;
      const int h = block.top(tile) + warp.row(row / 2, row % 2);
      const int w = block.left() + warp.column(row / 2, row % 2);
      Spec::Element(
          t,
          PointOf<typename Spec::TailOutput>(
              (static_cast<Index>(block.n) * Output::kH + h) * Output::kW + w),
          states[row]);
    }
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         const WarpTile<Spec>&, float*) {}

 private:
  // The warps with the first channels take over what the others have.
  static __device__ void MergeWarps(const WarpTile<Spec>& warp,
                                    Reducer (&states)[2 * Spec::kTilesM],
                                    float* scratch) {
    Reducer* const others = reinterpret_cast<Reducer*>(scratch);
    const int warp_n = warp.first_fragment / Spec::kTilesN;
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      const int place = (warp_n - 1) * kPixels + warp.pixel(row / 2, row % 2);
      if (warp_n > 0 && warp.t == 0) others[place] = states[row];
    }
    __syncthreads();
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
#pragma unroll
      for (int other = 0; other < Spec::kWarpsN - 1; ++other) {
        if (warp_n != 0) continue;
        states[row].Merge(
            others[other * kPixels + warp.pixel(row / 2, row % 2)]);
      }
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_TAILS_CUH_
