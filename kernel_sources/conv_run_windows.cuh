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

  // Calls visit(window) for each.
  template <typename Visit>
  static __device__ void ForEach(const Visit& visit) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int y = 0; y < kDown; ++y) {
#pragma unroll
        for (int x = 0; x < kFragments; x += kSharing) {
          const int number = (half * kDown + y) * kAcross + x / kSharing;
          visit(Window{number, half, y, x});
        }
      }
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_RUN_WINDOWS_CUH_
