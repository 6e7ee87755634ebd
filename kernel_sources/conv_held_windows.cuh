// Normalisation of what is pooled of a convolution's result, which never lies
// in memory before it is normalised.
//
// As in conv_held.cuh the blocks of an image are a team, which computes image
// after image. Here a block has a strip of tiles, and keeps what it has pooled
// of them: each warp its own windows, in shared memory, until kLag tiles of the
// next image are computed. By then the states of all blocks have arrived; tile
// by tile, the warp makes of its windows what the plan makes of them, stores
// that, and keeps those of a tile of the next image in their place.
//
// A thread keeps windows as its sums lie, and stores others of its warp: side
// by side in a row of a channel, so that few sectors of memory are written in
// part.
#ifndef KILN_KERNEL_SOURCES_CONV_HELD_WINDOWS_CUH_
#define KILN_KERNEL_SOURCES_CONV_HELD_WINDOWS_CUH_

#include "conv_held_states.cuh"
#include "conv_window_rows.cuh"

namespace kiln {

template <typename Spec>
class ConvHeldWindows {
 public:
  using Tile = ConvTile<Spec>;
  using Index = typename Spec::Index;
  using Finish = typename Spec::Finish;
  using Windows = RunWindows<Spec>;

  // Tiles of the next image that are computed before the first of this is
  // finished. Every strip has more than these.
  static constexpr int kLag = Spec::kHeldLag;

  __device__ ConvHeldWindows(const typename Spec::Tensors& t,
                             const ConvStages<Spec>& stages,
                             const ConvBlock<Spec>& block)
      : t_(t),
        block_(block),
        tiles_(block.tiles()),
        tile_(tiles_ - 1 - kLag),
        kept_(stages.scratch() + Spec::kStateWords),
        channels_(ChannelsAt(stages)),
        states_(t, stages),
        publishes_alone_(ThisTurn() == Turn::kPublish) {}

  __device__ const HeldStates<Spec>& states() const { return states_; }

  // Keeps what is pooled in a window of the tile that room was made for.
  __device__ void Keep(const typename Windows::Window& window,
                       float pooled) const {
    InPlace().Keep(window, pooled);
  }

  // Before the windows of a tile are kept, finishes those in their place, if
  // there are any: of the tile kLag and a strip before. Tile after tile, and
  // behind the last one as many times more as a strip has tiles, and kLag. In a
  // launch that publishes alone nothing is finished.
  __device__ void MakeRoom() {
    if (++place_ == tiles_ + kLag) place_ = 0;
    if (++tile_ == tiles_) {
      tile_ = 0;
      ++round_;
    }
    if (round_ < 0 || publishes_alone_) return;
    const ConvBlock<Spec> block = block_.InRound(round_);
    if (tile_ == 0) Know(block);
    InPlace().ForEach(
        places_, block, tile_,
        [&](int channel, const Point<Index>& at, float pooled, bool inside) {
          Finish::StoreRead(t_, at, Finish::Value(pooled, channels_[channel]),
                            inside);
        });
  }

 private:
  using Channel = typename Finish::Channel;
  using Kept = KeptWindows<Spec>;
  static constexpr int kChannelsOfWarp = WindowRows<Spec>::kChannels;
  static constexpr int kChannelWords =
      Tile::kThreads / 32 * kChannelsOfWarp *
      static_cast<int>(sizeof(Channel) / sizeof(float));
  static_assert(Spec::kStateWords +
                        (Spec::kTilesPerBlock + kLag) * Kept::kWords +
                        kChannelWords ==
                    Spec::kScratchWords,
                "The launch asks for this much.");

  __device__ Kept InPlace() const {
    return Kept(kept_ + place_ * Kept::kWords);
  }

  static __device__ Channel* ChannelsAt(const ConvStages<Spec>& stages) {
    void* const first = stages.scratch() + Spec::kScratchWords - kChannelWords;
    return static_cast<Channel*>(first) + threadIdx.x / 32 * kChannelsOfWarp;
  }

  // What is made of an image's windows, of the warp's channels.
  __device__ void Know(const ConvBlock<Spec>& block) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Point<Index> at = places_.PointOfChannel(block, half);
      const Moments state = states_.template Merged<4>(
          block, static_cast<int>(at.c) / Spec::kChannelsOfState);
      if (lane % 4 == half) {
        channels_[lane / 4 + 8 * half] = Finish::ReadChannel(t_, at, state);
      }
    }
  }

  const typename Spec::Tensors& t_;
  const ConvBlock<Spec> block_;
  const int tiles_;  // of a strip
  int place_ = -1;   // among those of tiles
  // What is in that place, or would be before the first image.
  int tile_, round_ = -2;
  float* const kept_;
  Channel* const channels_;  // of the warp, of that image
  const HeldStates<Spec> states_;
  const bool publishes_alone_;
  const RunPlaces<Spec> places_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_HELD_WINDOWS_CUH_
