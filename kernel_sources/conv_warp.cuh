// What the warps of a convolution hold where pixels are the rows of the
// product: their part of the tile, and the sums.
#ifndef KILN_KERNEL_SOURCES_CONV_WARP_CUH_
#define KILN_KERNEL_SOURCES_CONV_WARP_CUH_

#include "conv_tile.cuh"
#include "point.cuh"

namespace kiln {

// A warp's place in the tile. Its rows are 16 * kTilesM consecutive positions
// of rows of kRunPitch, some of them behind the tile's; its columns 8 * kTilesN
// channels; mma.cuh says which of them this lane holds. Where the tile has
// several phases, which alternate along its rows, so do row fragments.
template <typename Spec>
struct WarpTile {
  using Tile = ConvTile<Spec>;
  int lane, g, t;
  int warp_m;          // which pixels, of all images
  int first_fragment;  // of the channels, in eights

  __device__ WarpTile() {
    lane = threadIdx.x % 32;
    g = lane / 4;
    t = lane % 4;
    const int warp = threadIdx.x / 32;
    warp_m = warp % Spec::kWarpsM;
    first_fragment = warp / Spec::kWarpsM * Spec::kTilesN;
  }

  // The lane's first channel, of the block.
  __device__ int channel() const { return first_fragment * 8 + 2 * t; }
  // Of the pixel in row g + 8 * half of fragment m, in the tile.
  __device__ int row(int m, int half) const {
    return row_of_a(m, half) / Tile::kRowLength;
  }
  __device__ int column(int m, int half) const {
    return row_of_a(m, half) % Tile::kRowLength;
  }
  __device__ int pixel(int m, int half) const {
    return row(m, half) * Tile::kColumns + column(m, half);
  }
  // Whether it is a pixel of the output that counts in this tile.
  __device__ bool IsInside(const ConvBlock<Spec>& block, int tile, int m,
                           int half) const {
    if (Spec::kCountsOnce &&
        (row(m, half) >= Spec::kStepH || column(m, half) >= Spec::kStepW)) {
      return false;
    }
    return IsInTile(m, half) && block.IsInside(block.y(tile, row(m, half)),
                                               block.x(column(m, half)));
  }
  // Whether it is a pixel of the tile at all, not of the halo or behind the
  // last.
  __device__ bool IsInTile(int m, int half) const {
    constexpr int kRows = kWarpsOfImage * Spec::kTilesM * 16;
    constexpr bool kAllAre = Spec::kRunPitch == Spec::kTileW &&
                             kRows == Spec::kTileH * Tile::kColumns;
    return kAllAre ||
           (column(m, half) < Tile::kColumns && row(m, half) < Spec::kTileH);
  }

  // The first row of those that the warps of a warpgroup, or a warp alone,
  // have one behind the other, and which of them this is.
  __device__ int FirstOfTeam() const {
    const int warp = warp_m % kWarpsOfImage;
    return Spec::kWarpgroups > 0 ? warp / 4 * Spec::kTilesM * 64
                                 : warp * Spec::kTilesM * 16;
  }
  __device__ int PixelOfTeam(int m, int half) const {
    constexpr int kPhases = Tile::kTilePhases;
    const int run = m / kPhases;
    const int first =
        Spec::kWarpgroups > 0 ? run * 64 + warp_m % 4 * 16 : run * 16;
    return (first + g + 8 * half) * kPhases + m % kPhases;
  }

 private:
  static constexpr int kWarpsOfImage = Spec::kWarpsM / Spec::kImages;

  __device__ int row_of_a(int m, int half) const {
    return FirstOfTeam() + PixelOfTeam(m, half);
  }
};

// The sums of a warp, without bias.
template <typename Spec>
struct Sums {
  // d[m][4 * j + i]: element i of fragment j of row fragment m.
  float d[Spec::kTilesM][Spec::kTilesN * 4];

  // Of the lane's pixel `row` and channel `column`, which are i / 2 and i % 2
  // of a fragment.
  __device__ float At(int row, int column) const {
    return d[row / 2][column / 2 * 4 + row % 2 * 2 + column % 2];
  }

  __device__ void Clear() {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int i = 0; i < Spec::kTilesN * 4; ++i) d[m][i] = 0.0f;
    }
  }
};

// Calls visit(m, j, i, at, inside) for each of this lane's elements:
// sums.d[m][4 * j + i] belongs to the point `at`. Elements outside the output
// are visited too, so that there are no branches; they are not to be stored,
// and `at` is then some point of the output. Elements of one channel follow
// each other, so that what depends on the channel alone is read once.
template <typename Spec, typename Visit>
__device__ void ForEachElement(const ConvBlock<Spec>& block, int tile,
                               const WarpTile<Spec>& warp, Visit visit) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Tile = ConvTile<Spec>;
  constexpr Index kPlane = static_cast<Index>(Output::kH) * Output::kW;
  constexpr bool kHasPaddedChannels =
      Tile::kOutputs % Tile::kBlockChannels != 0;
  const int lane_channel = warp.channel();
  const int last_channel = Tile::kOutputs - 1 - lane_channel -
                           block.channel_block * Tile::kBlockChannels;

  Point<Index> base[Spec::kTilesM][2];
#pragma unroll
  for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      base[m][half] = PointAt<Output, Index>(
          block.n, block.first_channel() + lane_channel,
          static_cast<Index>(block.RowInside(block.y(tile, warp.row(m, half)))),
          static_cast<Index>(
              block.ColumnInside(block.x(warp.column(m, half)))));
    }
  }
  unsigned inside = 0;  // a bit for each row
#pragma unroll
  for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
    if (warp.IsInside(block, tile, row / 2, row % 2)) inside |= 1u << row;
  }
#pragma unroll
  for (int column = 0; column < 2 * Spec::kTilesN; ++column) {
    const int wanted = column / 2 * 8 + column % 2;
    const bool is_channel = !kHasPaddedChannels || wanted <= last_channel;
    const int channel = is_channel ? wanted : last_channel;
    // Keeps the loads of later channels from being moved up here, where their
    // registers are needed for sums. Pairs hide each other's latencies.
    if (column % 2 == 0) asm volatile("" ::: "memory");
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      Point<Index> at = base[row / 2][row % 2];
      at.i += channel * kPlane;
      at.c += channel;
      visit(row / 2, column / 2, row % 2 * 2 + column % 2, at,
            is_channel && (inside & 1u << row) != 0);
    }
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_WARP_CUH_
