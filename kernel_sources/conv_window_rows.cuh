// A warp's windows of a tile (conv_run_windows.cuh), in shared memory: kept as
// its threads have them, and gone through row by row of its channels, so that
// lanes side by side have windows side by side. In each step lanes have rows of
// as many channels as fit, or a part of one, and what a lane needs is as far
// apart from step to step for all of them.
//
//   const kiln::KeptWindows<Spec> kept(scratch);
//   kept.Keep(window, pooled);  // of each
//   kept.ForEach(places, block, tile,
//                [&](int channel, const auto& at, float pooled, bool inside) {
//                  Store(t, at, pooled, inside);
//                });
#ifndef KILN_KERNEL_SOURCES_CONV_WINDOW_ROWS_CUH_
#define KILN_KERNEL_SOURCES_CONV_WINDOW_ROWS_CUH_

#include "conv_run_windows.cuh"

namespace kiln {

template <typename Spec>
class WindowRows {
 public:
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Windows = RunWindows<Spec>;
  static constexpr int kChannels = 16;  // of a warp

  __device__ WindowRows(const RunPlaces<Spec>& places,
                        const ConvBlock<Spec>& block, int tile)
      : block_(block) {
    const int lane = threadIdx.x % 32;
    row_ = lane / kInRow % kRows;
    x_ = lane % kInRow;
    has_row_ = lane < kRows * kInRow;
    channel_ = places.first - lane / 4 + row_;
    h_ =
        (block.top(tile) + places.part * RunPlaces<Spec>::kRows) / Spec::kPoolH;
    const int left = block.left() / Spec::kPoolW;
    w_ = left + x_;
    columns_ = min(kOfTile, static_cast<int>(Output::kW) - left);
  }

  // Calls visit(kept_at, channel, at, inside) for each: where its lane keeps
  // it, in the order of numbers and, of each, threads, from the warp's first
  // lane on; of the warp's channels; its place in the result; whether it is
  // there.
  template <typename Visit>
  __device__ void ForEach(const Visit& visit) const {
    const Point<Index> first = PointAt<Output, Index>(
        static_cast<Index>(block_.n),
        static_cast<Index>(block_.first_channel() + channel_),
        static_cast<Index>(h_), static_cast<Index>(w_));
    const int kept_at = KeptAt(x_) + 4 * row_;
#pragma unroll
    for (int y = 0; y < Windows::kDown; ++y) {
#pragma unroll
      for (int channel = 0; channel < kChannels; channel += kRows) {
#pragma unroll
        for (int x = 0; x < kInRow; x += 32) {
          Point<Index> at = first;
          at.i += (channel * Output::kH + y) * Output::kW + x;
          at.c += channel;
          at.h += y;
          at.w += x;
          const int number =
              (channel / 8 * Windows::kDown + y) * Windows::kAcross + x / 4;
          const int step = number * Tile::kThreads + channel % 8 * 4;
          const bool is_kept = x + 32 <= kInRow || x_ + x < kInRow;
          visit(is_kept || x == 0 ? kept_at + step : 0, row_ + channel, at,
                has_row_ && x_ + x < columns_ && h_ + y < Output::kH &&
                    IsChannel(channel));
        }
      }
    }
  }

 private:
  using Output = typename Spec::Windows;
  // Side by side: those of four lanes for each number, and of the tile.
  static constexpr int kInRow = 4 * Windows::kAcross;
  static constexpr int kOfTile = Spec::kTileW / Spec::kPoolW;
  // Channels at once, a power of two.
  static constexpr int kRows = kInRow > 16  ? 1
                               : kInRow > 8 ? 2
                               : kInRow > 4 ? 4
                                            : 8;

  __device__ bool IsChannel(int channel) const {
    return Tile::kOutputs % Tile::kBlockChannels == 0 ||
           block_.channel_block * Tile::kBlockChannels + channel_ + channel <
               Tile::kOutputs;
  }

  // Of the first channel. Where two lanes share a window, the second and third
  // of four have changed places (RunWindows).
  static __device__ int KeptAt(int x) {
    const int quarter = x % 4;
    const bool are_swapped = Windows::kSharing == 2 && quarter % 3 != 0;
    return x / 4 * Tile::kThreads + (are_swapped ? 3 - quarter : quarter);
  }

  const ConvBlock<Spec>& block_;
  int row_, x_;  // of the lane, in the first step
  bool has_row_;
  int channel_, h_, w_;  // of that
  int columns_;          // of windows
};

template <typename Spec>
class KeptWindows {
 public:
  using Tile = ConvTile<Spec>;
  using Windows = RunWindows<Spec>;
  static constexpr int kWords = Windows::kCount * Tile::kThreads;

  // In the first kWords behind `words`, which all warps share.
  __device__ explicit KeptWindows(float* words)
      : first_(words + threadIdx.x / 32 * 32) {}

  __device__ void Keep(const typename Windows::Window& window,
                       float pooled) const {
    first_[window.number * Tile::kThreads + threadIdx.x % 32] = pooled;
  }

  // Calls visit(channel, at, pooled, inside) for each, by all lanes, once these
  // have kept theirs.
  template <typename Visit>
  __device__ void ForEach(const RunPlaces<Spec>& places,
                          const ConvBlock<Spec>& block, int tile,
                          const Visit& visit) const {
    __syncwarp();  // what lanes have kept is there
    WindowRows<Spec>(places, block, tile)
        .ForEach(
            [&](int kept_at, int channel, const Point<typename Spec::Index>& at,
                bool inside) { visit(channel, at, first_[kept_at], inside); });
    __syncwarp();  // and has been read
  }

 private:
  float* const first_;  // that of the warp's first lane
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_WINDOW_ROWS_CUH_
