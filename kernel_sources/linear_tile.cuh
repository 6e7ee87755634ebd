// What a block of linear.cu, or of linear_kept.cu, has: its tile and its place.
#ifndef KILN_KERNEL_SOURCES_LINEAR_TILE_CUH_
#define KILN_KERNEL_SOURCES_LINEAR_TILE_CUH_

#include "ptx_bulk.cuh"

namespace kiln {

template <typename Spec>
struct LinearTile {
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  static constexpr int kInputs = Input::kC * Input::kH * Input::kW;
  static constexpr int kOctet = 8;  // numbers of a unit of 16 bytes
  static constexpr int kChunk = 64;
  static constexpr int kOctets = kChunk / kOctet;
  static constexpr int kChunks = (kInputs + kChunk - 1) / kChunk;
  static constexpr int kOfPart = (kChunks + Spec::kParts - 1) / Spec::kParts;
  // Threads: one or two warps that bring chunks, behind those that multiply.
  static constexpr int kProducers = Spec::kThreads % 128;
  static constexpr int kConsumers = Spec::kThreads - kProducers;
  static constexpr int kChannels = kConsumers / 128 * 64;
  static constexpr int kImages = Spec::kImages;
  static constexpr int kDown = (Output::kN + kImages - 1) / kImages;
  static constexpr int kAcross = (Output::kC + kChannels - 1) / kChannels;
  // Parts of each number, one behind the other.
  static constexpr bool kIsSplit = Spec::kHalves > 0;
  static constexpr int kHalves = kIsSplit ? Spec::kHalves : 1;
  static_assert(kImages % Spec::kParts == 0, "Blocks have as many of them.");
  static_assert(!Spec::kSplitsResult || kAcross == 1, "Blocks have all of it.");

  // Of a chunk. Behind the last row that exists they may have anything.
  using Weights = uint4[kHalves][kChannels][kOctets];
  using Inputs = uint4[kHalves][kImages][kOctets];
  // So much apart that a warp's sums go to different banks.
  using Sums = float[kImages][kChannels + 4];

  // Threads that arrive when a chunk has been brought.
  static constexpr int kArrivals = kIsSplit ? 1 : kProducers;
};

// By one thread: barriers of stages, for those who fill and who read them.
template <typename Tile, int kStages>
__device__ void InitStages(ptx::Barrier (&full)[kStages],
                           ptx::Barrier (&empty)[kStages]) {
  for (int stage = 0; stage < kStages; ++stage) {
    ptx::InitBarrier(full + stage, Tile::kArrivals);
    ptx::InitBarrier(empty + stage, Tile::kConsumers);
  }
  ptx::FenceBarrierInit();
}

// Which tile a block has.
struct LinearPlace {
  int image, channel;  // the first
  int part = 0;        // of k
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_LINEAR_TILE_CUH_
