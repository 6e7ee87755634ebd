// States of images that blocks hold (conv_held.cuh, conv_held_windows.cuh): how
// a block leaves those of its part of an image, and reads those of others.
#ifndef KILN_KERNEL_SOURCES_CONV_HELD_STATES_CUH_
#define KILN_KERNEL_SOURCES_CONV_HELD_STATES_CUH_

#include "conv_partials.cuh"
#include "conv_runs.cuh"
#include "conv_stages.cuh"
#include "merge_moments.cuh"
#include "published_states.cuh"

namespace kiln {

template <typename Spec>
class HeldStates {
 public:
  using Tile = ConvTile<Spec>;

  __device__ HeldStates(const typename Spec::Tensors& t,
                        const ConvStages<Spec>& stages)
      : t_(t), stages_(stages), tag_bits_(UpperWord(TagAfter(*LastTag()))) {}

  // Leaves the states of the block's part of the `round`-th image to the team.
  // Warpgroups do not meet for that, or all would be done with their products
  // before any can go on: the last waits for the others. Nor does one arrive
  // for an image before all have for the one before.
  __device__ void Leave(const ConvBlock<Spec>& block, int round,
                        RunTail<Spec>* tail) const {
    using States = typename RunTail<Spec>::States;
    if constexpr (kMayRunAhead) {
      if (round > 0) ptx::Wait(stages_.states_left(), (round - 1) % 2);
    }
    // Some may still read those of the image before.
    const States states = reinterpret_cast<States>(
        stages_.scratch() + round % 2 * (Spec::kStateWords / 2));
    tail->Leave(states);
    ptx::Arrive(stages_.states_left());
    constexpr int kOthers = Tile::kThreads - 128;
    if (__shfl_sync(~0u, threadIdx.x, 0) < kOthers) return;
    ptx::Wait(stages_.states_left(), round % 2);
    MergeSlots<Spec, Spec::kGroupsN, 128>(
        block, states, threadIdx.x - kOthers,
        [&](const ConvBlock<Spec>& of_image, int number, int part,
            const Moments& state) {
          ptx::StoreRelaxed(t_.records + PlaceOfPartial(of_image, number, part),
                            Publish(state, tag()));
        });
  }

  // A state of the block's image, the same in all blocks: by kLanes lanes side
  // by side, into all of them. All lanes of a warp wait for theirs.
  template <int kLanes>
  __device__ Moments Merged(const ConvBlock<Spec>& block, int state) const {
    constexpr int kRecords = (Spec::kSplits + kLanes - 1) / kLanes;
    const int lane = threadIdx.x % kLanes;
    const unsigned long long* const records =
        t_.records +
        (static_cast<long long>(block.n) * Spec::kStatesOfImage + state) *
            Spec::kSplits;
    float counts[kRecords];
    float count = 0.0f;
#pragma unroll
    for (int k = 0; k < kRecords; ++k) {
      counts[k] = static_cast<float>(ValuesOf(state, lane + kLanes * k));
      count += counts[k];
    }
    count = SumOfLanes<kLanes>(count);
    unsigned long long words[kRecords];
    AwaitRecords<kLanes>(records + lane, Spec::kSplits - lane, tag(),
                         Publish(Moments(), tag()), words);
    Moments parts[kRecords];
#pragma unroll
    for (int k = 0; k < kRecords; ++k) {
      Unpublish(words[k], counts[k], &parts[k]);
    }
    return MergedMoments<kLanes>(parts, count);
  }

  // Says the tag to the next launch. By one thread, once all have read that of
  // the last.
  __device__ void LeaveTag() const { *LastTag() = tag(); }

 private:
  // Whether a warpgroup may come to an image's states before another has left
  // those of the one before. Not where an image has several turns, of which the
  // second is behind what all have left in front of their first; nor of two
  // groups, for the last one is there itself when it waits for both.
  static constexpr bool kMayRunAhead =
      Tile::kChunks * Spec::kTilesPerBlock == 1 && Spec::kWarpgroups > 2;
  static_assert(Tile::kPhases == 1 && Spec::kImages == 1,
                "A tile is a part of one image.");

  static __device__ unsigned UpperWord(Tag tag) {
    return __shfl_sync(~0u, static_cast<unsigned>(tag >> 32), 0);
  }
  __device__ Tag tag() const { return static_cast<Tag>(tag_bits_) << 32; }

  // Behind all records, a word for each block.
  __device__ unsigned long long* LastTag() const {
    return t_.records +
           static_cast<long long>(Spec::Output::kN) * Spec::kStatesOfImage *
               Spec::kSplits +
           blockIdx.x;
  }

  // Of a block's part of state `number` (PlaceOfPartial); none behind the last.
  static __device__ int ValuesOf(int number, int split) {
    using States = BlockStates<Spec>;
    constexpr int kMostRows = Spec::kTilesPerBlock * Spec::kStepH;
    const int top = split / Tile::kTilesAcross % Tile::kStrips * kMostRows;
    const int left = split % Tile::kTilesAcross * Spec::kStepW;
    const int rows = min(kMostRows, static_cast<int>(Spec::Output::kH) - top);
    const int columns =
        min(Spec::kTileW, static_cast<int>(Spec::Output::kW) - left);
    const int channels = States::ChannelsIn(number, split / States::kTiles);
    return split < Spec::kSplits ? rows * columns * channels : 0;
  }

  const typename Spec::Tensors& t_;
  const ConvStages<Spec>& stages_;
  const unsigned tag_bits_;  // its upper word, in a uniform register
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_HELD_STATES_CUH_
