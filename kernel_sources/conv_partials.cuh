// States that the blocks of a convolution leave, and how they are merged. An
// image has Spec::kStatesOfImage of them, each of Spec::kChannelsOfState
// channels: of a group that group_norm normalises, or of one channel whose
// image is reduced.
#ifndef KILN_KERNEL_SOURCES_CONV_PARTIALS_CUH_
#define KILN_KERNEL_SOURCES_CONV_PARTIALS_CUH_

#include "conv_block_states.cuh"
#include "conv_tile.cuh"
#include "merge_lanes.cuh"
#include "point.cuh"
#include "reducers.cuh"

namespace kiln {

// Sums of differences from a pivot, the first value taken: as exact as two
// passes, because the pivot is within a few deviations of the mean.
struct PivotedMoments {
  float pivot = 0.0f, sum = 0.0f, squares = 0.0f;

  // Adds a value's difference from the pivot.
  __device__ void AddDifference(float difference) {
    sum += difference;
    squares = fmaf(difference, difference, squares);
  }
  // The same where `taken`: by a predicate,
  // since compiling a branch for each value takes long. The sums are written
  // before the difference has been read for the last time ("&").
  __device__ void AddDifferenceIf(bool taken, float difference) {
    asm("{.reg .pred taken; setp.ne.b32 taken, %3, 0;"
        "@taken add.f32 %0, %0, %2; @taken fma.rn.f32 %1, %2, %2, %1;}"
        : "+&f"(sum), "+&f"(squares)
        : "f"(difference), "r"(static_cast<int>(taken)));
  }
  // The same `count` values about another pivot.
  __device__ void MoveTo(float other, float count) {
    const float shift = pivot - other;
    squares = fmaf(shift, fmaf(shift, count, 2.0f * sum), squares);
    sum = fmaf(shift, count, sum);
    pivot = other;
  }
  // Of no values, a state that no other heeds.
  __device__ Moments Get(float count) const {
    const float mean = count == 0.0f ? 0.0f : __fdividef(sum, count);
    Moments moments;
    moments.count = count;
    moments.mean = pivot + mean;
    moments.m2 = Maximum(fmaf(-mean, sum, squares), 0.0f);
    return moments;
  }
};

// The same for two, of which both are taken or neither: one predicate.
__device__ inline void AddDifferencesIf(bool taken, const float (&d)[2],
                                        PivotedMoments (&to)[2]) {
  asm("{.reg .pred taken; setp.ne.b32 taken, %6, 0;"
      "@taken add.f32 %0, %0, %4; @taken fma.rn.f32 %1, %4, %4, %1;"
      "@taken add.f32 %2, %2, %5; @taken fma.rn.f32 %3, %5, %5, %3;}"
      : "+&f"(to[0].sum), "+&f"(to[0].squares), "+&f"(to[1].sum),
        "+&f"(to[1].squares)
      : "f"(d[0]), "f"(d[1]), "r"(static_cast<int>(taken)));
}

// Where a block leaves what it has of a state of its image, which is part
// `part` of its channels.
template <typename Spec>
__device__ int PlaceOfPartial(const ConvBlock<Spec>& block, int state,
                              int part) {
  using Tile = ConvTile<Spec>;
  int split = (part * Spec::kPhasesH + block.phase_h) * Tile::kColumnStep;
  split = (split + block.phase_w) * Tile::kStrips + block.strip;
  split = split * Tile::kTilesAcross + block.column;
  return (block.n * Spec::kStatesOfImage + state) * Spec::kSplits + split;
}

// Leaves the block's part of state `number` of its image, or what is made of
// the state where the block has all of it.
template <typename Spec>
__device__ void LeavePartial(const typename Spec::Tensors& t,
                             const ConvBlock<Spec>& block, int number, int part,
                             const typename Spec::Reducer& state) {
  if constexpr (Spec::kStatesAreWhole) {
    const auto output = static_cast<typename Spec::Index>(
        block.n * Spec::kStatesOfImage + number);
    Spec::Element(t, PointOf<typename Spec::TailOutput>(output), state);
  } else {
    t.partials[PlaceOfPartial(block, number, part)] = state;
  }
}

// Merges what the block has, for each of kParts parts of the pixels of all its
// images and kSlots slots of equally many channels, in a fixed order: as many
// lanes for each state as have something of it. Calls leave(block, number,
// part, state) for each, with the block of its image and the part of the
// state's channels; empty ones, too, where the block speaks for these. By
// kThreads threads, whole warps, of which this one is `thread`.
template <typename Spec, int kParts, int kThreads, int kSlots, typename Leave>
__device__ void MergeSlots(const ConvBlock<Spec>& block,
                           const Moments (*slots)[kSlots], unsigned thread,
                           const Leave& leave) {
  static_assert(kParts > 0 && kParts % Spec::kImages == 0);
  using States = BlockStates<Spec>;
  constexpr int kSlotChannels = States::kChannels / kSlots;
  static_assert(States::kOfState % kSlotChannels == 0);
  constexpr int kPartsOfImage = kParts / Spec::kImages;
  constexpr int kLanes =
      LanesFor(States::kFewer / kSlotChannels * kPartsOfImage);
  constexpr int kAll = Spec::kImages * States::kMost;
  const int lane = thread % kLanes;
  const int first = States::First(block);
  // All lanes of a warp go round as often.
#pragma unroll 1
  for (int round = 0; round < kAll; round += kThreads / kLanes) {
    const int i = round + static_cast<int>(thread) / kLanes;
    const int image = Spec::kImages == 1 ? 0 : i / States::kMost;
    const int index = i - image * States::kMost;
    const ChannelRange range = States::RangeOf(block, index);
    const int of_part = range.count / kSlotChannels;
    const auto* const parts = slots + image * kPartsOfImage;
    Moments state;
#pragma unroll 1
    for (int k = lane; k < of_part * kPartsOfImage && i < kAll; k += kLanes) {
      state.Merge(
          parts[k / of_part][range.first / kSlotChannels + k % of_part]);
    }
    __syncwarp();
    MergeIntoFirstLane(kLanes, &state);
    if (lane == 0 && i < kAll && range.count > 0 &&
        first + index < Spec::kStatesOfImage) {
      const int part = States::PartOf(block, index);
      leave(block.Of(image), first + index, part, state);
      for (int empty = 1; empty < States::PartsLeft(block, index); ++empty) {
        leave(block.Of(image), first + index, part + empty, Moments());
      }
    }
  }
}

// The same, by all threads that multiply, which leave the block's parts.
template <typename Spec, int kParts, int kSlots>
__device__ void LeavePartials(const typename Spec::Tensors& t,
                              const ConvBlock<Spec>& block,
                              const Moments (*slots)[kSlots]) {
  MergeSlots<Spec, kParts, ConvTile<Spec>::kThreads>(
      block, slots, threadIdx.x,
      [&](const ConvBlock<Spec>& of_image, int number, int part,
          const Moments& state) {
        LeavePartial(t, of_image, number, part, state);
      });
}

// From the parts of state `number`, counted over all images, to what is made of
// it: by one warp.
template <typename Spec>
__device__ void MergeParts(const typename Spec::Tensors& t, unsigned number) {
  using Index = typename Spec::Index;
  const int lane = threadIdx.x % 32;
  typename Spec::Reducer state;
#pragma unroll 1
  for (int split = lane; split < Spec::kSplits; split += 32) {
    state.Merge(t.partials[number * Spec::kSplits + split]);
  }
  __syncwarp();
  MergeIntoFirstLane(LanesFor(Spec::kSplits), &state);
  if (lane != 0) return;
  Spec::Element(
      t, PointOf<typename Spec::TailOutput>(static_cast<Index>(number)), state);
}

// The states of a group that Spec left, kSplits of them, merged by one thread
// where they are needed: in pairs, the same sums as those of MergeParts.
template <int kSplits, typename Index>
__device__ Moments MergedStates(const Moments* partials, Index group) {
  static_assert(kSplits <= 32, "One state for each lane of MergeParts.");
  Moments states[kSplits];
#pragma unroll
  for (int i = 0; i < kSplits; ++i) states[i] = partials[group * kSplits + i];
#pragma unroll
  for (int step = 1; step < kSplits; step *= 2) {
#pragma unroll
    for (int i = 0; i + step < kSplits; i += 2 * step) {
      states[i].Merge(states[i + step]);
    }
  }
  return states[0];
}

// One warp for each state of each image.
template <typename Spec>
__device__ void MergePartials(const typename Spec::Tensors& t) {
  constexpr unsigned kStates =
      static_cast<unsigned>(Spec::Output::kN) * Spec::kStatesOfImage;
  const unsigned number = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (number < kStates) MergeParts<Spec>(t, number);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PARTIALS_CUH_
