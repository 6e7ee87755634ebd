// Which states of an image a block has channels of, and which of the parts of a
// state its own is. A state may be whole in a block, or a block in a state; or
// channels of a state begin in one block and go on in the next.
#ifndef KILN_KERNEL_SOURCES_CONV_BLOCK_STATES_CUH_
#define KILN_KERNEL_SOURCES_CONV_BLOCK_STATES_CUH_

#include "conv_tile.cuh"

namespace kiln {

// Consecutive channels of a block.
struct ChannelRange {
  int first;  // behind the block's first
  int count;
};

template <typename Spec>
class BlockStates {
 public:
  using Tile = ConvTile<Spec>;
  static constexpr int kChannels = Tile::kBlockChannels;
  static constexpr int kOfState = Spec::kChannelsOfState;
  static constexpr int kFewer = kOfState < kChannels ? kOfState : kChannels;

  // Whether all blocks have equally many channels of each of their states.
  static constexpr bool kAreEven =
      kChannels % kOfState == 0 || kOfState % kChannels == 0;

  // States that a block has channels of, at most.
  static constexpr int kTouched = (kChannels + kOfState - 2) / kOfState + 1;
  static constexpr int kMost = kAreEven ? kChannels / kFewer
                               : kTouched < Spec::kStatesOfImage
                                   ? kTouched
                                   : Spec::kStatesOfImage;

  // Blocks that leave a part of the same channels' pixels; and the parts that a
  // state has by channels, one for each block of them.
  static constexpr int kTiles =
      Spec::kPhasesH * Tile::kColumnStep * Tile::kStrips * Tile::kTilesAcross;
  static constexpr int kParts = Spec::kSplits / kTiles;

  static __device__ int First(const ConvBlock<Spec>& block) {
    return block.first_channel() / kOfState;
  }

  // Which of the block's states is that of its channel `channel`.
  static __device__ int IndexOf(const ConvBlock<Spec>& block, int channel) {
    if constexpr (kAreEven) return channel / kOfState;
    return (block.first_channel() + channel) / kOfState - First(block);
  }

  // The block's channels of its `index`-th state.
  static __device__ ChannelRange RangeOf(const ConvBlock<Spec>& block,
                                         int index) {
    if constexpr (kAreEven) return {index * kFewer, kFewer};
    const int first = (First(block) + index) * kOfState - block.first_channel();
    const int begin = max(first, 0);
    return {begin, max(min(first + kOfState, kChannels) - begin, 0)};
  }

  // Which part of its `index`-th state the block has, by channels; and how many
  // parts it speaks for: where it has the last channels, for those behind,
  // which are empty.
  static __device__ int PartOf(const ConvBlock<Spec>& block, int index) {
    if constexpr (kParts == 1) return 0;
    return block.channel_block - (First(block) + index) * kOfState / kChannels;
  }
  static __device__ int PartsLeft(const ConvBlock<Spec>& block, int index) {
    if constexpr (kAreEven || kParts == 1) return 1;
    const int end =
        (First(block) + index + 1) * kOfState - block.first_channel();
    return end <= kChannels ? kParts - PartOf(block, index) : 1;
  }

  // Channels in part `part` of an image's state `number`.
  static __device__ int ChannelsIn(int number, int part) {
    if constexpr (kAreEven) return kFewer;
    const int first = number * kOfState;
    const int of_block = (first / kChannels + part) * kChannels;
    return max(
        min(first + kOfState, of_block + kChannels) - max(first, of_block), 0);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_BLOCK_STATES_CUH_
