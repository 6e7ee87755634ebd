// Normalisation of a convolution's result that never lies in memory.
//
// The blocks of an image are a team and have a tile each; Spec::kTeams teams,
// of which all blocks are resident, compute image after image. A block leaves
// the states of its tile to the team (published_states.cuh), keeps the tile's
// values in planes of shared memory, and goes on with the next image. While the
// tensor cores multiply for that, it merges the states that have arrived of the
// image before, makes of its values what the plan makes of them, and stores
// that. So a team has an image's time to hear from its slowest block.
//
// Where blocks may not be resident together, each image is computed twice, in
// two launches (Turn): states are there before anybody asks for them.
//
// What a warp branches on here comes from its first lane, so that the compiler
// knows that lanes stay together; else it has each product wait for the one
// before.
#ifndef KILN_KERNEL_SOURCES_CONV_HELD_CUH_
#define KILN_KERNEL_SOURCES_CONV_HELD_CUH_

#include "conv_held_states.cuh"
#include "conv_runs.cuh"
#include "conv_stages.cuh"
#include "conv_stores.cuh"

namespace kiln {

template <typename Spec>
class ConvHeld {
 public:
  using Tile = ConvTile<Spec>;
  using Run = Planes<Spec>;
  using Index = typename Spec::Index;
  using Finish = typename Spec::Finish;

  // Of what is done with an image's values: states are merged, then each half
  // of a warp's channels is stored.
  static constexpr int kSteps = 3;
  // The chunk of the next image beside whose products the first step is taken;
  // others follow chunk by chunk, or behind the last. Not the first chunk:
  // states take a while. Where lines are turned chunks come so fast that it is
  // one later.
  static constexpr int kFirstChunk =
      Tile::kChunks > kSteps ? Tile::kChunks - kSteps + Spec::kTurnsLines : 1;

  __device__ ConvHeld(const typename Spec::Tensors& t,
                      const ConvStages<Spec>& stages)
      : t_(t),
        stages_(stages),
        planes_(stages.scratch() + Spec::kStateWords),
        channels_(reinterpret_cast<Channel*>(planes_ + 2 * kHalfWords) +
                  threadIdx.x / 32 * kWarpChannels),
        merged_(reinterpret_cast<Moments*>(planes_ + 2 * kHalfWords +
                                           kChannelWords)),
        states_(t, stages) {}

  __device__ const HeldStates<Spec>& states() const { return states_; }

  // Keeps a tile's values. Each warp has planes of its own.
  template <int kCount>
  __device__ void Keep(const float (&values)[1][kCount]) const {
    __syncwarp();  // what was there has been read
#pragma unroll
    for (int half = 0; half < 2; ++half) PlanesOf(half).Lay(values);
  }

  // Takes a step with what is kept, of the `round`-th image. All warps take all
  // steps. Of one image some may still read states while others merge those of
  // the next.
  __device__ void Take(int step, const ConvBlock<Spec>& block,
                       int round) const {
    Moments* const states = merged_ + round % 2 * kStates;
    if (step == 0) return MergeStates(block, states);
    if (step == 1) {
      ptx::Wait(stages_.states_known(), round % 2);
      MakeChannels(block, states);
    }
    Store(block, step - 1);
  }

 private:
  using Channel = typename Finish::Channel;
  static constexpr int kWarps = Tile::kThreads / 32;
  static constexpr int kWarpChannels = 2 * Run::kChannels;
  static constexpr int kHalfWords = kWarps * Run::kChannels * Run::kPitch;
  static constexpr int kChannelWords =
      kWarps * kWarpChannels * sizeof(Channel) / sizeof(float);
  // Of an image, that a block has a part of.
  static constexpr int kStates = BlockStates<Spec>::kMost;
  static_assert(Spec::kStateWords + 2 * kHalfWords + kChannelWords +
                        2 * kStates * 3 ==
                    Spec::kScratchWords,
                "The launch asks for this much.");
  static_assert(Spec::kTilesPerBlock == 1, "A block holds one tile.");

  __device__ Run PlanesOf(int half) const {
    return {planes_ + half * kHalfWords, half};
  }

  // Lanes that merge a state: so few that warps have all states at once, each
  // of which takes as long as a load from the L2, but with no more than a few
  // records for each lane.
  static constexpr __device__ int LanesOfState() {
    constexpr int kMostRecords = 4;
    int lanes = 32;
    while (lanes > 1 && kWarps * 32 / lanes < kStates &&
           Spec::kSplits <= kMostRecords * lanes / 2) {
      lanes /= 2;
    }
    return lanes;
  }

  // Some warps merge a few states each; all arrive.
  __device__ void MergeStates(const ConvBlock<Spec>& block,
                              Moments* states) const {
    constexpr int kLanes = LanesOfState();
    constexpr int kOfWarp = 32 / kLanes;
    const int first = BlockStates<Spec>::First(block);
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int i = __shfl_sync(~0u, threadIdx.x / 32, 0) * kOfWarp; i < kStates;
         i += kWarps * kOfWarp) {
      if (first + i >= Spec::kStatesOfImage) break;
      const int own = i + lane / kLanes;
      const Moments state = states_.template Merged<kLanes>(
          block, min(first + own, static_cast<int>(Spec::kStatesOfImage) - 1));
      if (lane % kLanes == 0 && own < kStates) states[own] = state;
    }
    __syncwarp();
    ptx::Arrive(stages_.states_known());
  }

  // What the values of each of the warp's channels have in common.
  __device__ void MakeChannels(const ConvBlock<Spec>& block,
                               const Moments* states) const {
    const int lane = threadIdx.x % 32;
    const int last =
        Tile::kOutputs - 1 - block.channel_block * Tile::kBlockChannels;
    if (lane < kWarpChannels) {
      const int channel = min(PlanesOf(0).first + lane, last);
      channels_[lane] = Finish::ReadChannel(
          t_,
          PointAt<typename Spec::Output, Index>(
              static_cast<Index>(block.n),
              static_cast<Index>(block.first_channel() + channel),
              static_cast<Index>(0), static_cast<Index>(0)),
          states[BlockStates<Spec>::IndexOf(block, channel)]);
    }
    __syncwarp();
  }

  __device__ void Store(const ConvBlock<Spec>& block, int half) const {
    const Run planes = PlanesOf(half);
    const int first = block.first_channel() + planes.first;
    const Channel* const channels = channels_ + half * Run::kChannels;
    StorePlanes<Spec, Finish>(
        t_, block, 0, planes, [&](const Point<Index>& at, float value) {
          // Of a channel that the block lacks, `at` is in its first.
          return Finish::Value(
              value, channels[max(static_cast<int>(at.c) - first, 0)]);
        });
  }

  const typename Spec::Tensors& t_;
  const ConvStages<Spec>& stages_;
  float* const planes_;
  Channel* const channels_;  // the warp's
  Moments* const merged_;    // the block's states, of two images
  const HeldStates<Spec> states_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_HELD_CUH_
