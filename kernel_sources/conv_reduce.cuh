// Reductions over the channels of a convolution tile.
#ifndef KILN_KERNEL_SOURCES_CONV_REDUCE_CUH_
#define KILN_KERNEL_SOURCES_CONV_REDUCE_CUH_

#include "conv_tail.cuh"
#include "reducers.cuh"

namespace kiln {

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
  state->largest = OverLanes(OfAll(x, Maximum), Maximum);
}

template <int kCount>
__device__ void ReduceValues(Amin* state, const float (&x)[kCount]) {
  state->smallest = OverLanes(OfAll(x, Minimum), Minimum);
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

// Of values times log2(e), as Spec::Read gives them here: of `sum`, powers of
// two of differences from `base`, which is PivotOf the largest. An error of a
// power grows with the difference, but its share of the sum falls faster: the
// plain power of two is right to an ulp of the sum. `largest` is rounded;
// `rest`, what it lacks, is the same for all, and where it is beyond 1 no more
// than a rounding of the result.
__device__ inline LogSumExp SumOfPowersFrom(float base, float sum) {
  constexpr float kLog2E = 0x1.715476p+0f;
  LogSumExp state;
  state.largest = base * (1.0f / kLog2E);
  const float rest = Clamp(fmaf(-state.largest, kLog2E, base), -1.0f, 1.0f);
  state.scaled.sum = sum * Exp2(rest);
  return state;
}

template <int kCount>
__device__ LogSumExp SumFromLargest(const float (&x)[kCount]) {
  Amax most;
  ReduceValues(&most, x);
  const float base = PivotOf(most.largest);
  float powers[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) powers[i] = Exp2(x[i] - base);
  return SumOfPowersFrom(base, OverLanes(SumOf(powers), Add));
}

// Whether a sum of powers as they are is neither so large that one of them may
// be infinite nor so small that those below the normal numbers count.
__device__ inline bool IsPlainSum(float sum) {
  return sum > 0x1p-64f && sum < 0x1p64f;
}

// Reduces the values of several pixels, row by row.
template <typename Reducer, int kRows, int kCount>
__device__ void ReduceRows(Reducer (&states)[kRows],
                           const float (&x)[kRows][kCount]) {
#pragma unroll
  for (int row = 0; row < kRows; ++row) ReduceValues(&states[row], x[row]);
}

// The sums of the powers as they are where they are plain; else, and of NaNs,
// from the largest on. Either way of the pixel alone. An x that is up to 64
// times log2(e) is rounded by 2^-19, its power by 1.3e-6 of itself at most and
// by less than 1e-7 up to 4.
template <int kRows, int kCount>
__device__ void ReduceRows(LogSumExp (&states)[kRows],
                           const float (&x)[kRows][kCount]) {
  bool all_are = true;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    float powers[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) powers[i] = Exp2(x[row][i]);
    states[row].largest = 0.0f;
    states[row].scaled.sum = OverLanes(SumOf(powers), Add);
    all_are = all_are && IsPlainSum(states[row].scaled.sum);
  }
  // The same branch in all lanes: products wait for each other behind others.
  if (!__any_sync(~0u, !all_are)) return;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const LogSumExp shifted = SumFromLargest(x[row]);
    if (!IsPlainSum(states[row].scaled.sum)) states[row] = shifted;
  }
}

// What a lane has of a tile's values: row by row those of a pixel. Pixels that
// are not inside need no right result, but what is no channel must not count.
// Calls pass_turn() on the way (conv_tail.cuh).
template <typename Spec>
struct ChannelValues {
  using Index = typename Spec::Index;
  static constexpr int kRows = 2 * Spec::kTilesM;
  static constexpr int kColumns = 2 * Spec::kTilesN;
  float x[kRows][kColumns];

  template <typename Scales, typename PassTurn>
  __device__ ChannelValues(const typename Spec::Tensors& t,
                           const Channels<Spec>& channels,
                           const ConvBlock<Spec>& block, int tile,
                           const WarpTile<Spec>& warp, const Sums<Spec>& sums,
                           const Scales& scales, const PassTurn& pass_turn) {
    constexpr bool kHasAll =
        ConvTile<Spec>::kOutputs == ConvTile<Spec>::kBlockChannels;
    const typename Channels<Spec>::OfLane of_lane(channels, block.n,
                                                  warp.channel());
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool inside) {
          const float value =
              Spec::Read(t, at, sums.d[m][4 * j + i], scales(j, i), inside,
                         of_lane(j, i, at));
          x[2 * m + i / 2][2 * j + i % 2] =
              kHasAll || inside ? value : Spec::Neutral();
          if (m + 1 == Spec::kTilesM && j + 1 == Spec::kTurnHeldFor && i == 3) {
            pass_turn();
          }
        });
  }
};

// A reduction over the channels of a pixel, all of which the block has. The
// four lanes that share a pixel end with the same state; where several warps
// have channels of it, their states meet in shared memory.
template <typename Spec>
struct ConvTail<Spec, Tail::kChannels> {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Reducer = typename Spec::Reducer;
  static constexpr int kPixels = Spec::kTileH * Spec::kTileW;
  static_assert(Spec::kImages == 1, "All warps share its states.");
  static_assert(ConvTile<Spec>::kChannelBlocks == 1 && Spec::kGroups == 1,
                "One block has all channels.");

  template <typename Scales, typename PassTurn = TurnPassed>
  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       const Scales& scales, float* scratch,
                       const PassTurn& pass_turn = PassTurn()) {
    constexpr int kRows = ChannelValues<Spec>::kRows;
    const ChannelValues<Spec> values(t, channels, block, tile, warp, sums,
                                     scales, pass_turn);
    Reducer states[kRows];
    ReduceRows(states, values.x);
    if constexpr (Spec::kWarpsN > 1) {
      constexpr int kWords =
          (Spec::kWarpsN - 1) * kPixels * (sizeof(Reducer) / sizeof(float));
      MergeWarps(warp, states, scratch + tile % 2 * kWords);
    }
    if (warp.first_fragment != 0) return;
      // The four lanes that share pixels go on with one each.
#pragma unroll
    for (int first = 0; first < kRows; first += 4) {
      const int row = first + warp.t;
      Reducer state = states[first];
#pragma unroll
      for (int i = 1; i < 4 && first + i < kRows; ++i) {
        Choose(warp.t == i, states[first + i], &state);
      }
      if (row >= kRows || !warp.IsInside(block, tile, row / 2, row % 2)) {
        continue;
      }
      const int h = block.y(tile, warp.row(row / 2, row % 2));
      const int w = block.x(warp.column(row / 2, row % 2));
      Spec::Element(
          t,
          PointOf<typename Spec::TailOutput>(
              (static_cast<Index>(block.n) * Output::kH + h) * Output::kW + w),
          state);
    }
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         const WarpTile<Spec>&, float*) {}

 private:
  // *state = other if `yes`. Word by word: a choice between structs would send
  // them through memory.
  static __device__ void Choose(bool yes, const Reducer& other,
                                Reducer* state) {
    constexpr int kWords = sizeof(Reducer) / sizeof(float);
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      float& word = reinterpret_cast<float*>(state)[k];
      word = yes ? reinterpret_cast<const float*>(&other)[k] : word;
    }
  }

  // The warps with the first channels take over what the others have. Every
  // other tile's is at the same place, so that all have met between who reads
  // there and who writes there next.
  static __device__ void MergeWarps(const WarpTile<Spec>& warp,
                                    Reducer (&states)[2 * Spec::kTilesM],
                                    float* scratch) {
    Reducer* const others = reinterpret_cast<Reducer*>(scratch);
    const int warp_n = warp.first_fragment / Spec::kTilesN;
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      const int place = (warp_n - 1) * kPixels + warp.pixel(row / 2, row % 2);
      if (warp_n > 0 && warp.t == 0 && warp.IsInTile(row / 2, row % 2)) {
        others[place] = states[row];
      }
    }
    ConvTile<Spec>::Sync();
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
#pragma unroll
      for (int other = 0; other < Spec::kWarpsN - 1; ++other) {
        if (warp_n != 0 || !warp.IsInTile(row / 2, row % 2)) continue;
        states[row].Merge(
            others[other * kPixels + warp.pixel(row / 2, row % 2)]);
      }
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_REDUCE_CUH_
