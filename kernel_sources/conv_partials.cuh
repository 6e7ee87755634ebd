// States that the blocks of a convolution leave, of group_norm's statistics or
// of reductions over images, and how they are merged.
#ifndef KILN_KERNEL_SOURCES_CONV_PARTIALS_CUH_
#define KILN_KERNEL_SOURCES_CONV_PARTIALS_CUH_

#include "conv_tile.cuh"
#include "merge_lanes.cuh"
#include "point.cuh"
#include "reducers.cuh"

namespace kiln {

// The state of the lane whose number differs in the bits of `mask`.
__device__ inline Moments FromLane(const Moments& mine, int mask) {
  Moments other;
  other.count = __shfl_xor_sync(~0u, mine.count, mask);
  other.mean = __shfl_xor_sync(~0u, mine.mean, mask);
  other.m2 = __shfl_xor_sync(~0u, mine.m2, mask);
  return other;
}
__device__ inline Sum FromLane(const Sum& mine, int mask) {
  Sum other;
  other.sum = __shfl_xor_sync(~0u, mine.sum, mask);
  other.error = __shfl_xor_sync(~0u, mine.error, mask);
  return other;
}
__device__ inline Amax FromLane(const Amax& mine, int mask) {
  return {__shfl_xor_sync(~0u, mine.largest, mask)};
}
__device__ inline Amin FromLane(const Amin& mine, int mask) {
  return {__shfl_xor_sync(~0u, mine.smallest, mask)};
}

// Sums of differences from a pivot, the first value taken: as exact as two
// passes, because the pivot is within a few deviations of the mean.
struct PivotedMoments {
  float pivot = 0.0f, sum = 0.0f, squares = 0.0f;

  __device__ void Add(float x) { AddDifference(x - pivot); }
  __device__ void AddDifference(float difference) {
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

// Where the state of one block and group goes.
template <typename Spec>
__device__ int PlaceOfPartial(const ConvBlock<Spec>& block, int group) {
  using Tile = ConvTile<Spec>;
  constexpr int kTiles = Tile::kPhases * Tile::kStrips * Tile::kTilesAcross;
  constexpr int kBlocksPerGroup = Spec::kSplits / kTiles;
  int split = block.channel_block % kBlocksPerGroup;
  split = (split * Spec::kPhasesH + block.phase_h) * Spec::kPhasesW;
  split = (split + block.phase_w) * Tile::kStrips + block.strip;
  split = split * Tile::kTilesAcross + block.column;
  return (block.n * Spec::kNormGroups + group) * Spec::kSplits + split;
}

// Merges the block's states, one for each of kParts parts of the pixels and
// kSlots slots of equally many channels, in a fixed order: one warp for each
// group.
template <typename Spec, int kParts, int kSlots>
__device__ void LeavePartials(const typename Spec::Tensors& t,
                              const ConvBlock<Spec>& block,
                              const Moments (*states)[kSlots]) {
  static_assert(kParts > 0);
  using Tile = ConvTile<Spec>;
  constexpr int kFitting = Tile::kBlockChannels / Spec::kGroupChannels;
  constexpr int kGroups = kFitting > 0 ? kFitting : 1;
  constexpr int kGroupSlots = kSlots / kGroups;
  const int lane = threadIdx.x % 32;
  const int first = block.first_channel() / Spec::kGroupChannels;
#pragma unroll 1
  for (int i = threadIdx.x / 32; i < kGroups; i += Tile::kThreads / 32) {
    Moments state;
#pragma unroll 1
    for (int k = lane; k < kGroupSlots * kParts; k += 32) {
      state.Merge(states[k / kGroupSlots][i * kGroupSlots + k % kGroupSlots]);
    }
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) {
      state.Merge(FromLane(state, mask));
    }
    if (lane == 0 && first + i < Spec::kNormGroups) {
      t.partials[PlaceOfPartial(block, first + i)] = state;
    }
  }
}

// From the partial states of a group of an image to what is made of them: by
// one warp.
template <typename Spec>
__device__ void MergeGroup(const typename Spec::Tensors& t, unsigned group) {
  using Index = typename Spec::Index;
  const int lane = threadIdx.x % 32;
  typename Spec::Reducer state;
#pragma unroll 1
  for (int split = lane; split < Spec::kSplits; split += 32) {
    state.Merge(t.partials[group * Spec::kSplits + split]);
  }
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    state.Merge(FromLane(state, mask));
  }
  if (lane != 0) return;
  Spec::Element(
      t, PointOf<typename Spec::TailOutput>(static_cast<Index>(group)), state);
}

// One warp for each group of each image.
template <typename Spec>
__device__ void MergePartials(const typename Spec::Tensors& t) {
  constexpr unsigned kGroups =
      static_cast<unsigned>(Spec::Output::kN) * Spec::kNormGroups;
  const unsigned group = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (group < kGroups) MergeGroup<Spec>(t, group);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PARTIALS_CUH_
