// How the blocks of a convolution share its output: what all its kernels agree
// on.
//
// A convolution is a matrix product of pixels x k by k x channels, where k
// counts the pairs of input channel and filter tap. A block computes
// kTilesPerBlock tiles of kTileH x kTileW pixels, one below the other, for
// kBlockChannels output channels of one image and one group. It goes through
// the input channels in chunks of kChunk. Where images are small it computes
// kImages of them, a tile of each.
//
// Each of the kGroups may be kJoined groups of the convolution
// (conv_joined.cuh).
//
// A transposed convolution of stride s is s * s convolutions, one for each
// phase: the pixels whose coordinates have the same remainders modulo s. So are
// the rows of a convolution of dilation kInterleave, with the same weights.
// Tiles then count pixels of a phase. A tile has kPhasesAcross phases of its
// columns, for each of which its block has sums and weights, of one patch: if
// all, what it stores are whole rows. Where kMergesRows, it has those of its
// rows, too, and the patch is brought once for all of them.
//
// Or all phases of a place are channels of an ordinary convolution
// (kChannelPhases, conv_phase_stores.cuh), with as many pixels as there are
// places: what is called Output here. The result's extents are Result's.
//
// A tile begins kStepH rows below the one above it and kStepW columns beside
// the one on its left. That is less than it has where windows that are pooled
// overlap: the tile computes, too, what the next ones' windows share with its
// own. The first begins kBeforeH rows and kBeforeW columns before the output.
// Where kCountsOnce, elements that several tiles have count in that one alone
// whose step they lie in.
//
// Where there are several kRowParts, the rows of a filter are as many filters,
// each of a part of them, and a chunk has channels of one: chunks go through
// the parts before they go on to other channels. The last part has as many rows
// as the others, if need be some that the part before has, too.
//
// Where there are several kSumBlocks, they are a cluster, of which each goes
// through its part of the chunks of one tile (conv_cluster_sums.cuh).
//
// Where kImageStep > 0 a block computes every kImageStep-th image, one behind
// the other; or, where it kWalksColumns, of all images' columns of tiles every
// so many-th. Where there are kTeams (conv_held.cuh), as many, all blocks of an
// image, with a tile each, are a team.
#ifndef KILN_KERNEL_SOURCES_CONV_TILE_CUH_
#define KILN_KERNEL_SOURCES_CONV_TILE_CUH_

#include "ptx_barriers.cuh"

namespace kiln {

template <typename Spec>
struct ConvTile {
  // Threads that multiply.
  static constexpr int kThreads = Spec::kWarpsM * Spec::kWarpsN * 32;

  // Channels of one group.
  static constexpr int kInputs = Spec::Input::kC / Spec::kGroups;
  static constexpr int kOutputs = Spec::Output::kC / Spec::kGroups;
  static constexpr int kBlockChannels = Spec::kBlockChannels;
  static constexpr int kChannelBlocks =
      (kOutputs + kBlockChannels - 1) / kBlockChannels;
  static constexpr int kAllChunks =
      (kInputs + Spec::kChunk - 1) / Spec::kChunk * Spec::kRowParts;
  static constexpr int kChunks = kAllChunks / Spec::kSumBlocks;  // of a block
  static_assert(kAllChunks % Spec::kSumBlocks == 0,
                "Blocks of a cluster have as many chunks each.");

  static constexpr int kPhases = Spec::kPhasesH * Spec::kPhasesW;
  static constexpr int kWeightPhases = kPhases / Spec::kInterleave;
  // Channels of the product that are phases of one of the result's.
  static constexpr int kChannelPhases =
      Spec::kChannelPhasesH * Spec::kChannelPhasesW;
  // Of a tile, side by side and below each other; and how many tiles have the
  // phases of a place.
  static constexpr int kPhasesAcross = Spec::kPhasesAcross;
  static constexpr int kPhasesDown = Spec::kMergesRows ? Spec::kPhasesH : 1;
  static constexpr int kTilePhases = kPhasesAcross * kPhasesDown;
  static constexpr int kColumnStep = Spec::kPhasesW / kPhasesAcross;
  static constexpr int kRowStep = Spec::kPhasesH / kPhasesDown;
  // Of a tile's row in all of them: what products have of it, halo included or
  // not (kRunPitch; in the patch rows are kRowPitch apart), and the tile's own.
  static constexpr int kRowLength = Spec::kRunPitch * kPhasesAcross;
  static constexpr int kColumns = Spec::kTileW * kPhasesAcross;
  static constexpr int kTilesAcross =
      (Spec::kExtentW + Spec::kStepW - 1) / Spec::kStepW;
  static constexpr int kTilesDown =
      (Spec::kExtentH + Spec::kStepH - 1) / Spec::kStepH;
  static constexpr int kStrips =
      (kTilesDown + Spec::kTilesPerBlock - 1) / Spec::kTilesPerBlock;
  static constexpr int kBlocksOfImage = kTilesAcross * kStrips *
                                        kChannelBlocks * kRowStep *
                                        kColumnStep * Spec::kGroups;

  static_assert(Spec::kRowParts == 1 || kPhases == Spec::kInterleave,
                "Parts have the rows of a whole filter.");
  // The row of the filter with which a part of them begins, and whether the
  // last part and the one before have a row.
  static __device__ int RowOfPart(int part) {
    if constexpr (Spec::kRowParts == 1) return 0;
    return min(part * Spec::kTapsH, Spec::kKernelH - Spec::kTapsH);
  }
  static __device__ bool IsInTwoParts(int row) {
    if constexpr (Spec::kRowParts == 1) return false;
    return row >= Spec::kKernelH - Spec::kTapsH &&
           row < (Spec::kRowParts - 1) * Spec::kTapsH;
  }

  // Waits for the threads of a warpgroup that multiplies, at a barrier of its
  // own.
  static __device__ int GroupBarrier(int group) { return 8 + group; }
  static __device__ void SyncGroup(int group) {
    ptx::Sync<128>(GroupBarrier(group));
  }
  // Waits for all threads that multiply.
  static __device__ void Sync() {
    if constexpr (Spec::kWarpgroups > 0) {
      asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
    } else {
      __syncthreads();
    }
  }
};

// Where a block works.
template <typename Spec>
struct ConvBlock {
  using Tile = ConvTile<Spec>;

  int sum_part;          // which of a tile's chunks, among kSumBlocks parts
  int n;                 // image; where the block has several, one of them
  int group;             // of the convolution
  int phase_h, phase_w;  // of the output, the first of a tile's
  int channel_block;     // among those of the group
  int strip;             // of kTilesPerBlock tiles, one below the other
  int column;            // of tiles

  // Of the block's image `image`.
  __device__ explicit ConvBlock(unsigned number, int image = 0) {
    unsigned rest = number;
    sum_part = rest % Spec::kSumBlocks;
    rest /= Spec::kSumBlocks;
    if constexpr (!Spec::kWalksColumns) {
      column = rest % Tile::kTilesAcross;
      rest /= Tile::kTilesAcross;
    }
    strip = rest % Tile::kStrips;
    rest /= Tile::kStrips;
    channel_block = rest % Tile::kChannelBlocks;
    rest /= Tile::kChannelBlocks;
    phase_w = rest % Tile::kColumnStep * Tile::kPhasesAcross;
    rest /= Tile::kColumnStep;
    phase_h = rest % Tile::kRowStep;
    rest /= Tile::kRowStep;
    group = rest % Spec::kGroups;
    rest /= Spec::kGroups;
    if constexpr (Spec::kWalksColumns) {
      column = rest % Tile::kTilesAcross;
      rest /= Tile::kTilesAcross;
    }
    n = rest * Spec::kImages + image;
  }

  // Where a block computes several images, or columns of them: how many, and
  // the block in one of them.
  __device__ int rounds() const {
    constexpr int kAll = static_cast<int>(Spec::Output::kN) * kColumnsApart;
    return (kAll - (n * kColumnsApart + OwnColumn()) + Spec::kImageStep - 1) /
           Spec::kImageStep;
  }
  __device__ ConvBlock InRound(int round) const {
    ConvBlock other = *this;
    if constexpr (Spec::kWalksColumns) {
      const int at = n * kColumnsApart + column + round * Spec::kImageStep;
      other.n = at / kColumnsApart;
      other.column = at % kColumnsApart;
    } else {
      other.n = n + round * Spec::kImageStep;
    }
    return other;
  }
  __device__ int tiles() const {
    return min(Spec::kTilesPerBlock,
               Tile::kTilesDown - strip * Spec::kTilesPerBlock);
  }
  __device__ int first_channel() const {
    return group * Tile::kOutputs + channel_block * Tile::kBlockChannels;
  }
  // The tile's first pixel, in its phase, behind the first of all tiles.
  __device__ int top(int tile) const {
    return (strip * Spec::kTilesPerBlock + tile) * Spec::kStepH;
  }
  __device__ int left() const { return column * Spec::kStepW; }
  // In the output; negative where tiles begin before it.
  __device__ int y(int tile, int row) const {
    return (top(tile) + row) * Spec::kPhasesH + phase_h - Spec::kBeforeH;
  }
  __device__ int x(int column_of_tile) const {
    static_assert(
        Spec::kPhasesAcross == 1 || Spec::kPhasesAcross == Spec::kPhasesW,
        "A tile's columns are as far apart as each other.");
    return left() * Spec::kPhasesW + column_of_tile * Tile::kColumnStep +
           phase_w - Spec::kBeforeW;
  }
  static __device__ bool IsInside(int y, int x) {
    return (Spec::kBeforeH == 0 || y >= 0) && y < Spec::Output::kH &&
           (Spec::kBeforeW == 0 || x >= 0) && x < Spec::Output::kW;
  }
  // The nearest that is inside.
  static __device__ int RowInside(int y) {
    const int row = min(y, static_cast<int>(Spec::Output::kH) - 1);
    return Spec::kBeforeH == 0 ? row : max(row, 0);
  }
  static __device__ int ColumnInside(int x) {
    const int column = min(x, static_cast<int>(Spec::Output::kW) - 1);
    return Spec::kBeforeW == 0 ? column : max(column, 0);
  }
  // The block of image `image`.
  __device__ ConvBlock Of(int image) const {
    ConvBlock other = *this;
    other.n = n / Spec::kImages * Spec::kImages + image;
    return other;
  }
  // Number among all chunks of the block's `chunk`.
  __device__ int OfAllChunks(int chunk) const {
    return sum_part * Tile::kChunks + chunk;
  }
  // Which of the filter's rows `chunk` has.
  __device__ int row_part(int chunk) const {
    return OfAllChunks(chunk) % Spec::kRowParts;
  }
  // The first channel of `chunk`, among the group's, and how many there are
  // from it on.
  __device__ int FirstOfChunk(int chunk) const {
    return OfAllChunks(chunk) / Spec::kRowParts * Spec::kChunk;
  }
  __device__ int ChannelsFrom(int chunk) const {
    return Tile::kInputs - FirstOfChunk(chunk);
  }
  // Number of the packed weights of `chunk`, of one of the tile's phases.
  __device__ int weights(int chunk, int of_tile = 0) const {
    const int phase =
        phase_h / Spec::kInterleave * Spec::kPhasesW + phase_w + of_tile;
    const int own = group * Tile::kWeightPhases + phase;
    return (own * Tile::kChannelBlocks + channel_block) * Tile::kAllChunks +
           OfAllChunks(chunk);
  }

 private:
  // Of an image's, those that are gone through as images are.
  static constexpr int kColumnsApart =
      Spec::kWalksColumns ? Tile::kTilesAcross : 1;
  __device__ int OwnColumn() const { return Spec::kWalksColumns ? column : 0; }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_TILE_CUH_
