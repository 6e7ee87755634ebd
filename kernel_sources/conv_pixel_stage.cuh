// Values of a convolution tile, where pixels are the rows of the product, on
// their way from registers to memory: through shared memory, so that lanes have
// pixels side by side and fill whole lines. Registers hold eight side by side,
// which is enough where these fill a sector.
//
// The warps of a warpgroup, or one warp alone, share their pixels and go
// through their channels kFragments fragments at a time.
#ifndef KILN_KERNEL_SOURCES_CONV_PIXEL_STAGE_CUH_
#define KILN_KERNEL_SOURCES_CONV_PIXEL_STAGE_CUH_

#include "conv_warp.cuh"

namespace kiln {

// Fragments of eight channels that are on their way at once, at most. Shared
// memory for them is allotted by ConvGeometry::StagedWords.
constexpr int kStagedFragments = 4;

template <typename Spec>
class PixelStage {
 public:
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Tile = ConvTile<Spec>;
  static constexpr int kRows = 2 * Spec::kTilesM;
  static constexpr int kColumns = 2 * Spec::kTilesN;

  // `scratch` has room for all that share a tile.
  __device__ PixelStage(const ConvBlock<Spec>& block, int tile,
                        const WarpTile<Spec>& warp, float* scratch)
      : block_(block),
        warp_(warp),
        words_(scratch + threadIdx.x / 32 / kWarps * kWords) {
    const int lane = threadIdx.x % (32 * kWarps);
    channel_ = lane / kLanes;
#pragma unroll
    for (int i = 0; i < kVisits; ++i) {
      const int pixel = lane % kLanes + i * kLanes;
      const int row = warp.FirstOfTeam() + min(pixel, kPixels - 1);
      const int h = row / Tile::kRowLength;
      const int w = row % Tile::kRowLength;
      const int y = block.y(tile, h);
      const int x = block.x(w);
      const bool is_inside = pixel < kPixels && h < Spec::kTileH &&
                             w < Tile::kColumns && y < Output::kH &&
                             x < Output::kW;
      inside_ |= is_inside ? 1u << i : 0u;
      pixels_[i] = is_inside ? static_cast<Index>(y) * Output::kW + x : 0;
    }
  }

  // Calls store(at, value, inside) for each value(row, column) of the threads
  // that share the pixels. `at` is a point of the output even outside.
  template <typename Value, typename Store>
  __device__ void ForEach(const Value& value, const Store& store) {
#pragma unroll
    for (int first = 0; first < Spec::kTilesN; first += kFragments) {
      Sync();  // all have read what was there before
      Put(first, value);
      Sync();
      Visit(first, store);
    }
  }

 private:
  static constexpr int kWarps = Spec::kWarpgroups > 0 ? 4 : 1;  // that share
  static constexpr int kPixels = 16 * Spec::kTilesM * kWarps;
  static constexpr int kRounds =
      (Spec::kTilesN + kStagedFragments - 1) / kStagedFragments;
  static constexpr int kFragments = (Spec::kTilesN + kRounds - 1) / kRounds;
  // Of a channel: lanes of a warp reach different banks.
  static constexpr int kPitch = kPixels + 4;
  static constexpr int kWords = kFragments * 8 * kPitch;
  static constexpr int kLanes = kPixels < 32 ? kPixels : 32;  // of a channel
  static constexpr int kVisits = (kPixels + kLanes - 1) / kLanes;
  static constexpr int kTogether = 32 * kWarps / kLanes;  // channels

  static __device__ void Sync() {
    if constexpr (kWarps > 1) {
      ConvTile<Spec>::SyncGroup(threadIdx.x / 128);
    } else {
      __syncwarp();
    }
  }

  template <typename Value>
  __device__ void Put(int first, const Value& value) {
#pragma unroll
    for (int column = 0; column < 2 * kFragments; ++column) {
      const int from = 2 * first + column;
      if (from >= kColumns) break;
      float* const channel =
          words_ + (column / 2 * 8 + 2 * warp_.t + column % 2) * kPitch;
#pragma unroll
      for (int row = 0; row < kRows; ++row) {
        const int m = row / 2;
        float* const to = channel + warp_.PixelOfTeam(m, row % 2);
        if constexpr (Tile::kTilePhases == 1) {
          *to = value(row, from);
        } else if (m % 2 == 0) {  // the next fragment has the next pixels
          static_assert(Tile::kTilePhases == 2);
          *reinterpret_cast<float2*>(to) =
              make_float2(value(row, from), value(row + 2, from));
        }
      }
    }
  }

  template <typename Store>
  __device__ void Visit(int first, const Store& store) const {
    constexpr Index kPlane = static_cast<Index>(Output::kH) * Output::kW;
    const int fragments = min(kFragments, Spec::kTilesN - first);
    // Of the block.
    const int before = (warp_.first_fragment + first) * 8;
    const int last = ConvTile<Spec>::kOutputs - 1 -
                     block_.channel_block * ConvTile<Spec>::kBlockChannels;
#pragma unroll 2
    for (int k = 0; k < fragments * 8; k += kTogether) {
      const int channel = k + channel_;
      const bool is_channel =
          channel < fragments * 8 && before + channel <= last;
      const int channel_at =
          block_.first_channel() + min(before + channel, last);
      const Index first_of_channel =
          (static_cast<Index>(block_.n) * Output::kC + channel_at) * kPlane;
#pragma unroll
      for (int i = 0; i < kVisits; ++i) {
        const Point<Index> at = {first_of_channel + pixels_[i], block_.n,
                                 channel_at, pixels_[i] / Output::kW,
                                 pixels_[i] % Output::kW};
        const int pixel = threadIdx.x % kLanes + i * kLanes;
        store(at, words_[channel * kPitch + min(pixel, kPixels - 1)],
              is_channel && (inside_ & 1u << i) != 0);
      }
    }
  }

  const ConvBlock<Spec>& block_;
  const WarpTile<Spec>& warp_;
  float* const words_;
  int channel_;            // the lane's first
  Index pixels_[kVisits];  // the lane's, of an output channel
  unsigned inside_ = 0;    // a bit for each
};

// Calls store(at, value, inside) for each value(row, column), staged or as they
// are, by Spec::kStagesResults.
template <typename Spec, typename Value, typename Store>
__device__ void StorePixels(const ConvBlock<Spec>& block, int tile,
                            const WarpTile<Spec>& warp, float* scratch,
                            const Value& value, const Store& store) {
  using Index = typename Spec::Index;
  if constexpr (Spec::kStagesResults) {
    PixelStage<Spec>(block, tile, warp, scratch).ForEach(value, store);
  } else {
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool inside) {
          store(at, value(2 * m + i / 2, 2 * j + i % 2), inside);
        });
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PIXEL_STAGE_CUH_
