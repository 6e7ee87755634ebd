// Where the windows of a tile lie, of conv_runs.cuh: kPoolH x kPoolW pixels
// that lie in one row of fragments; kPoolW is 2, 4 or 8. Lanes that share a
// window share the windows of as many fragments, so that each has one.
#ifndef KILN_KERNEL_SOURCES_CONV_RUN_WINDOWS_CUH_
#define KILN_KERNEL_SOURCES_CONV_RUN_WINDOWS_CUH_

#include "conv_run_places.cuh"

namespace kiln {

// Those of a thread.
template <typename Spec>
class RunWindows {
 public:
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Places = RunPlaces<Spec>;
  // Side by side, and lanes that share a window of them.
  static constexpr int kFragments = Places::kPitch / 8;
  static constexpr int kSharing = Spec::kPoolW / 2;
  static constexpr int kDown = Places::kRows / Spec::kPoolH;
  static constexpr int kAcross = (kFragments + kSharing - 1) / kSharing;
  static constexpr int kCount = 2 * kDown * kAcross;

  // Known when the kernel is compiled.
  struct Window {
    int number;  // below kCount
    int half;    // of the thread's channels
    int y;       // row of windows
    int x;       // first of the fragments that lanes share
  };

  // Which of the fragments that lanes share is the lane's.
  static __device__ int MineOf(const Places& places) {
    return places.pair % kSharing;
  }

  __device__ RunWindows(const Places& places, const ConvBlock<Spec>& block,
                        int tile)
      : places_(places), block_(block) {
    const int mine = MineOf(places);
    const int column = 8 * mine + 2 * (places.pair - mine);
    h_ = (block.top(tile) + places.part * Places::kRows) / Spec::kPoolH;
    w_ = (block.left() + column) / Spec::kPoolW;
    constexpr int kPooled = Output::kW * Spec::kPoolW;  // columns
    columns_ = min(Spec::kTileW, kPooled - block.left()) - column;
  }

  // Calls visit(window, at, inside) for each, with its place in the result.
  template <typename Visit>
  __device__ void ForEach(const Visit& visit) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int channel = places_.first + 8 * half;
      const bool is_channel =
          Tile::kOutputs % Tile::kBlockChannels == 0 ||
          block_.channel_block * Tile::kBlockChannels + channel <
              Tile::kOutputs;
      const Point<Index> first = PointAt<Output, Index>(
          static_cast<Index>(block_.n),
          static_cast<Index>(block_.first_channel() + channel),
          static_cast<Index>(h_), static_cast<Index>(w_));
#pragma unroll
      for (int y = 0; y < kDown; ++y) {
        const int fitting = is_channel && h_ + y < Output::kH ? columns_ : 0;
#pragma unroll
        for (int x = 0; x < kFragments; x += kSharing) {
          Point<Index> at = first;
          at.i += y * Output::kW + x * 8 / Spec::kPoolW;
          at.h += y;
          at.w += x * 8 / Spec::kPoolW;
          const int number = (half * kDown + y) * kAcross + x / kSharing;
          visit(Window{number, half, y, x}, at, 8 * x < fitting);
        }
      }
    }
  }

 private:
  using Output = typename Spec::Windows;

  const Places& places_;
  const ConvBlock<Spec>& block_;
  int h_, w_;    // of the first
  int columns_;  // that count, from the first's
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_RUN_WINDOWS_CUH_
