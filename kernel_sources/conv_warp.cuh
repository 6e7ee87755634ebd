// What the warps of conv_mma.cu hold: their part of the tile, the sums, and
// the division of shared memory.
#ifndef KILN_KERNEL_SOURCES_CONV_WARP_CUH_
#define KILN_KERNEL_SOURCES_CONV_WARP_CUH_

#include "conv_tile.cuh"
#include "point.cuh"

namespace kiln {

// A warp's place in the tile. Its rows are 16 * kTilesM consecutive pixels of
// the tile, its columns 8 * kTilesN channels; mma.cuh says which of them this
// lane holds.
template <typename Spec>
struct WarpTile {
  int lane, g, t;
  int warp_m;                          // which pixels
  int first_fragment;                  // of the channels, in eights
  int patch_offset[Spec::kTilesM][2];  // of rows g and g + 8

  __device__ WarpTile() {
    lane = threadIdx.x % 32;
    g = lane / 4;
    t = lane % 4;
    const int warp = threadIdx.x / 32;
    warp_m = warp % Spec::kWarpsM;
    first_fragment = warp / Spec::kWarpsM * Spec::kTilesN;
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int y = row(m, half) * Spec::kStrideH;
        const int x = column(m, half) * Spec::kStrideW;
        patch_offset[m][half] = y * ConvTile<Spec>::kPatchW + x;
      }
    }
  }

  // Of the pixel in row g + 8 * half of fragment m, in the tile.
  __device__ int row(int m, int half) const {
    return pixel(m, half) / Spec::kTileW;
  }
  __device__ int column(int m, int half) const {
    return pixel(m, half) % Spec::kTileW;
  }
  __device__ int pixel(int m, int half) const {
    return (warp_m * Spec::kTilesM + m) * 16 + g + 8 * half;
  }
  __device__ bool IsInside(const ConvBlock<Spec>& block, int tile, int m,
                           int half) const {
    return block.top(tile) + row(m, half) < Spec::Output::kH &&
           block.left() + column(m, half) < Spec::Output::kW;
  }
};

// The sums of a warp, without bias.
template <typename Spec>
struct Sums {
  float d[Spec::kTilesM][Spec::kTilesN][4];

  __device__ void Clear() {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int j = 0; j < Spec::kTilesN; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) d[m][j][i] = 0.0f;
      }
    }
  }
};

// Two stages of patch and weights; the patch that is multiplied, rounded or
// split; then what the tail needs. Weights that never change lie there once.
template <typename Spec>
class ConvShared {
 public:
  using Tile = ConvTile<Spec>;
  static constexpr int kWeightStages = Tile::kChunks > 1 ? 2 : 1;
  static constexpr int kSplitPatch = 2 * Tile::kPatchWords;
  static constexpr int kWeights =
      kSplitPatch + (Spec::kSplitsInput ? 2 : 1) * Tile::kPatchWords;
  static constexpr int kDepthOffsets =
      kWeights + kWeightStages * Tile::kWeightWords;
  static constexpr int kScratch = kDepthOffsets + Tile::kSteps * 8;
  static_assert((kScratch + Spec::kScratchWords) * 4 == Spec::kSharedBytes,
                "The launch asks for this much.");

  __device__ explicit ConvShared(float* words) : words_(words) {}

  __device__ float* patch(int stage) const {
    return words_ + stage % 2 * Tile::kPatchWords;
  }
  __device__ float* split_patch() const { return words_ + kSplitPatch; }
  __device__ unsigned* weights(int stage) const {
    return reinterpret_cast<unsigned*>(
        words_ + kWeights + stage % kWeightStages * Tile::kWeightWords);
  }
  __device__ int* depth_offsets() const {
    return reinterpret_cast<int*>(words_ + kDepthOffsets);
  }
  __device__ float* scratch() const { return words_ + kScratch; }

 private:
  float* words_;
};

// Calls visit(m, j, i, at, inside) for each of this lane's elements:
// sums.d[m][j][i] belongs to the point `at`. Elements outside the output are
// visited too, so that there are no branches; they are not to be stored, and
// `at` is then some point of the output. Elements of one channel follow each
// other, so that what depends on the channel alone is read once.
template <typename Spec, typename Visit>
__device__ void ForEachElement(const ConvBlock<Spec>& block, int tile,
                               const WarpTile<Spec>& warp, Visit visit) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Tile = ConvTile<Spec>;
  constexpr Index kPlane = static_cast<Index>(Output::kH) * Output::kW;
  constexpr bool kHasPaddedChannels =
      Tile::kOutputs % Tile::kBlockChannels != 0;
  const int lane_channel = warp.first_fragment * 8 + 2 * warp.t;
  const int last_channel = Tile::kOutputs - 1 - lane_channel -
                           block.channel_block * Tile::kBlockChannels;

  Point<Index> base[Spec::kTilesM][2];
#pragma unroll
  for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      base[m][half] = PointAt<Output, Index>(
          block.n, block.first_channel() + lane_channel,
          min(block.top(tile) + warp.row(m, half), Output::kH - 1),
          min(block.left() + warp.column(m, half), Output::kW - 1));
    }
  }
#pragma unroll
  for (int column = 0; column < 2 * Spec::kTilesN; ++column) {
    const int wanted = column / 2 * 8 + column % 2;
    const bool is_channel = !kHasPaddedChannels || wanted <= last_channel;
    const int channel = is_channel ? wanted : last_channel;
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      Point<Index> at = base[row / 2][row % 2];
      at.i += channel * kPlane;
      at.c += channel;
      visit(row / 2, column / 2, row % 2 * 2 + column % 2, at,
            is_channel && warp.IsInside(block, tile, row / 2, row % 2));
    }
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_WARP_CUH_
