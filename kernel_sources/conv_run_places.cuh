// Where a thread's sums lie in a tile of conv_wgmma.cu, where channels are the
// rows of the product: positions 8 * j + 2 * t and the next of channels g and
// g + 8 of its warp, with g = lane / 4 and t = lane % 4. Runs are whole rows,
// halo included or not, so where they wrap is known when the kernel is
// compiled.
#ifndef KILN_KERNEL_SOURCES_CONV_RUN_PLACES_CUH_
#define KILN_KERNEL_SOURCES_CONV_RUN_PLACES_CUH_

#include "conv_channels.cuh"
#include "conv_tail.cuh"
#include "conv_tile.cuh"
#include "point.cuh"

namespace kiln {

// `value`, but from 0 to `most`.
__device__ constexpr int Within(int most, int value) {
  return value < 0 ? 0 : value < most ? value : most;
}

// What follows the sums of a tile, from registers.
template <typename Spec, Tail kTail = Spec::kTail>
class RunTail;

template <typename Spec>
struct RunPlaces {
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  static constexpr int kCount = Spec::kTilesN * 4;  // sums of a thread
  static constexpr int kPitch = Spec::kRunPitch;
  static constexpr int kRows = Spec::kTilesN * 8 / kPitch;

  int pair;   // t
  int part;   // of the pixels
  int first;  // channel of the block
  // Of the tile that Find was called for: rows that count, and columns, in the
  // tile's first phase or that which FindColumns was called for.
  int columns, rows;

  __device__ RunPlaces() {
    const int lane = threadIdx.x % 32;
    pair = lane % 4;
    part = PartOfWarp();
    first = FirstOfWarp() + lane / 4;
  }

  // Of the pixels, and of the block's channels.
  static __device__ int PartOfWarp() {
    return threadIdx.x / 32 / (4 * Spec::kGroupsM);
  }
  static __device__ int FirstOfWarp() {
    return threadIdx.x / 32 % (4 * Spec::kGroupsM) * 16;
  }

  __device__ void Find(const ConvBlock<Spec>& block, int tile) {
    FindColumns(block, 0);
    rows =
        max(0, min(kRows, PhaseRows(block) - block.top(tile) - part * kRows));
  }

  __device__ void FindColumns(const ConvBlock<Spec>& block, int of_tile) {
    const int left_over = PhaseColumns(block, of_tile) - block.left();
    columns = min(Spec::kTileW, left_over) - 2 * pair;
  }

  // Of the sums of a channel.
  __device__ int CountTaken() const {
    return columns <= 0 ? 0 : rows * (columns / 8 * 2 + min(columns % 8, 2));
  }

  // Whether the sum of the position `next` behind that of sum `i` counts,
  // wherever the tile lies and in the tile that was found. What knows no
  // condition costs half as much.
  static __device__ constexpr bool SurelyTakes(int i, int next) {
    return RowOf(i) < kSureRows && ColumnOf(i, next) + 6 < kSureColumns;
  }
  __device__ bool Takes(int i, int next) const {
    const bool is_row = RowOf(i) < kSureRows || RowOf(i) < rows;
    const bool is_column =
        ColumnOf(i, next) + 6 < kSureColumns || ColumnOf(i, next) < columns;
    return is_row && is_column;
  }

  // Some point of a channel of the block; of the last where there is none.
  static __device__ Point<Index> PointIn(const ConvBlock<Spec>& block,
                                         int channel) {
    const int last =
        Tile::kOutputs - 1 - block.channel_block * Tile::kBlockChannels;
    return FirstOfChannel<Spec>(block.n,
                                block.first_channel() + min(channel, last));
  }
  // The same of the channel `half` of the thread.
  __device__ Point<Index> PointOfChannel(const ConvBlock<Spec>& block,
                                         int half) const {
    return PointIn(block, first + 8 * half);
  }

 private:
  // Of a tile, those that lie in the output wherever the tile does.
  static constexpr int kSureColumns =
      Within(Spec::kTileW, Spec::Output::kW / Spec::kPhasesW -
                               (Tile::kTilesAcross - 1) * Spec::kTileW);
  static constexpr int kSureRows =
      Within(kRows, Spec::Output::kH / Spec::kPhasesH -
                        (Tile::kTilesDown - 1) * Spec::kTileH -
                        (Spec::kGroupsN - 1) * kRows);

  static __device__ constexpr int RowOf(int i) { return 2 * i / kPitch; }
  static __device__ constexpr int ColumnOf(int i, int next) {
    return 2 * i % kPitch + next;
  }

  // Of the phases that the block works on.
  static __device__ int PhaseRows(const ConvBlock<Spec>& block) {
    return (Spec::Output::kH - block.phase_h + Spec::kPhasesH - 1) /
           Spec::kPhasesH;
  }
  static __device__ int PhaseColumns(const ConvBlock<Spec>& block,
                                     int of_tile) {
    return (Spec::Output::kW - block.phase_w - of_tile + Spec::kPhasesW - 1) /
           Spec::kPhasesW;
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_RUN_PLACES_CUH_
