// What the ops behind a convolution need of a channel, the same for all its
// pixels: bias, and scale and shift of a normalisation. Where warpgroups
// multiply, a block computes them once for each of its images, in shared
// memory. Behind the last channel are copies of it.
#ifndef KILN_KERNEL_SOURCES_CONV_CHANNELS_CUH_
#define KILN_KERNEL_SOURCES_CONV_CHANNELS_CUH_

#include "conv_tile.cuh"
#include "point.cuh"

namespace kiln {

// `table` + `count`, of which the compiler knows no more, so that entries
// behind it are found by constant offsets.
template <typename Entry>
__device__ const Entry* Behind(const Entry* table, int count) {
  unsigned bytes = count * sizeof(Entry);
  asm("" : "+r"(bytes));
  return reinterpret_cast<const Entry*>(reinterpret_cast<const char*>(table) +
                                        bytes);
}

// The first point of the result's channel that a channel of the product, among
// those of all groups, is a phase of.
template <typename Spec>
__device__ Point<typename Spec::Index> FirstOfChannel(int image, int channel) {
  using Index = typename Spec::Index;
  return PointAt<typename Spec::Result, Index>(
      static_cast<Index>(image),
      static_cast<Index>(channel / ConvTile<Spec>::kChannelPhases),
      static_cast<Index>(0), static_cast<Index>(0));
}

template <typename Spec>
class Channels {
 public:
  using Index = typename Spec::Index;
  using Channel = typename Spec::Channel;
  using Tile = ConvTile<Spec>;

  __device__ Channels(const typename Spec::Tensors& t, unsigned number,
                      void* shared)
      : t_(t), block_(number), table_(static_cast<Channel*>(shared)) {}

  // By all threads that multiply, which meet.
  __device__ void Fill() {
    if constexpr (!Spec::kSharesChannels) return;
    const int first = block_.first_channel();
    first_ = first / kPhases;
    const int last =
        Tile::kOutputs - 1 - block_.channel_block * Tile::kBlockChannels;
    constexpr int kCount = Spec::kImages * kOfImage;
    for (int i = threadIdx.x; i < kCount; i += Tile::kThreads) {
      const int image = Spec::kImages == 1 ? 0 : i / kOfImage;
      const int channel = min((i - image * kOfImage) * kPhases, last);
      table_[i] = Spec::ReadChannel(
          t_, FirstOfChannel<Spec>(block_.n + image, first + channel));
    }
    Tile::Sync();
  }

  // Of the channel of a point of the block.
  __device__ Channel operator()(const Point<Index>& at) const {
    if constexpr (!Spec::kSharesChannels) return Spec::ReadChannel(t_, at);
    return TableOf(static_cast<int>(at.n))[at.c - first_];
  }

  // Those of a lane that has elements of two channels in eight, where pixels
  // are the rows of the product: of an image, from `first` of the block on.
  class OfLane {
   public:
    __device__ OfLane(const Channels& channels, int image, int first)
        : channels_(channels), table_(Behind(channels.TableOf(image), first)) {}

    // For element `i` of fragment `j`, at the point `at`.
    __device__ Channel operator()(int j, int i, const Point<Index>& at) const {
      if constexpr (!Spec::kSharesChannels) return channels_(at);
      return table_[8 * j + i % 2];
    }

   private:
    const Channels& channels_;
    const Channel* const table_;
  };

 private:
  static constexpr int kPhases = Tile::kChannelPhases;
  // Of the result, at most: some phases of the first and of the last may be
  // another block's.
  static constexpr int kOfImage =
      (Tile::kBlockChannels + kPhases - 2) / kPhases + 1;

  __device__ const Channel* TableOf(int image) const {
    if constexpr (Spec::kImages == 1) return table_;
    return table_ + (image - block_.n) * kOfImage;
  }

  const typename Spec::Tensors& t_;
  const ConvBlock<Spec> block_;  // of the first image
  Channel* const table_;
  int first_ = 0;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_CHANNELS_CUH_
