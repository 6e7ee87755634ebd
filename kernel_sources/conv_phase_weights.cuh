// The packed weights of a tile's phases (conv_tile.cuh), on their way to the
// shared memory of conv_wgmma.cu. Where the stride of a transposed convolution
// does not divide its filter, some phases lack the first row or the first
// column of taps. pack_halves.cu leaves room for these; they are neither
// brought nor multiplied.
#ifndef KILN_KERNEL_SOURCES_CONV_PHASE_WEIGHTS_CUH_
#define KILN_KERNEL_SOURCES_CONV_PHASE_WEIGHTS_CUH_

#include "conv_stages.cuh"
#include "ptx_bulk.cuh"

namespace kiln {

// Whether these phases lack the first row or column of taps.
template <typename Spec>
__device__ constexpr bool LacksRow(int phase_h) {
  return (phase_h + Spec::kPhaseStartH) % Spec::kPhasesH +
             Spec::kPhasesH * (Spec::kTapsH - 1) >=
         Spec::kKernelH;
}
template <typename Spec>
__device__ constexpr bool LacksColumn(int phase_w) {
  return (phase_w + Spec::kPhaseStartW) % Spec::kPhasesW +
             Spec::kPhasesW * (Spec::kTapsW - 1) >=
         Spec::kKernelW;
}

// Whether a phase may lack all taps of a chain, as where the filter is smaller
// than the stride: their sum is zero.
template <typename Spec>
__device__ constexpr bool MayLackAllTaps() {
  return Spec::kHasUnevenPhases &&
         ((Spec::kChains > 1 && Spec::kProductCalls == 1) ||
          Spec::kKernelH < Spec::kPhasesH || Spec::kKernelW < Spec::kPhasesW);
}

template <typename Spec>
class PhaseWeights {
 public:
  using Tile = ConvTile<Spec>;
  using Group = GroupTile<Spec>;

  __device__ PhaseWeights(const uint4* packed, const ConvBlock<Spec>& block)
      : packed_(packed),
        block_(block),
        first_row_(Spec::kHasUnevenPhases && LacksRow<Spec>(block.phase_h)) {}

  // Of a chunk, of all phases of a tile.
  __device__ unsigned bytes() const {
    if constexpr (!Spec::kHasUnevenPhases) return Group::kWeights * 16;
    int columns = 0;
#pragma unroll
    for (int phase = 0; phase < Tile::kTilePhases; ++phase) {
      columns += Spec::kTapsW - FirstColumn(phase);
    }
    return Spec::kWeightParts * (Spec::kTapsH - first_row_) * columns * kTap *
           16;
  }

  // Sends for those of a chunk, which `full` is to expect. By one thread.
  __device__ void Fetch(int chunk, uint4* to, ptx::Barrier* full) const {
#pragma unroll
    for (int phase = 0; phase < Tile::kTilePhases; ++phase) {
      const uint4* const from =
          packed_ + static_cast<long long>(block_.weights(chunk, phase)) *
                        Group::kPhaseWeights;
      FetchPhase(from, phase, to + phase * Group::kPhaseWeights, full);
    }
  }

  // The same into a stage.
  __device__ void Send(int chunk, int stage,
                       const ConvStages<Spec>& stages) const {
    ptx::Barrier* const full = stages.full(stage);
    ptx::ArriveExpecting(full, bytes());
    Fetch(chunk, stages.weights(stage, chunk), full);
  }

  // Sends for those of all chunks, where they are kept. By one thread.
  __device__ void Keep(const ConvStages<Spec>& stages) const {
    ptx::Barrier* const full = stages.kept_weights_full();
    ptx::ArriveExpecting(full, bytes() * Tile::kChunks);
#pragma unroll 1
    for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
      Fetch(chunk, stages.weights(0, chunk), full);
    }
  }

 private:
  // Units of a tap of one part, where a product takes channels of one tap.
  static constexpr int kTap = Group::kOctets * Spec::kBlockChannels;
  static_assert(!Spec::kHasUnevenPhases ||
                kTap * Group::kTaps == Group::kWeightPart);

  __device__ int FirstColumn(int of_tile) const {
    return LacksColumn<Spec>(block_.phase_w + of_tile) ? 1 : 0;
  }

  // Present taps of a row lie side by side, and rows that lack none.
  __device__ void FetchPhase(const uint4* from, int phase, uint4* to,
                             ptx::Barrier* full) const {
    if constexpr (!Spec::kHasUnevenPhases) {
      ptx::BulkLoad(to, from, Group::kPhaseWeights * 16, full);
    } else {
      const int column = FirstColumn(phase);
      if (MayLackAllTaps<Spec>() && column == Spec::kTapsW) return;
      const int rows = column == 0 ? Spec::kTapsH - first_row_ : 1;  // at once
      const unsigned bytes = rows * (Spec::kTapsW - column) * kTap * 16;
#pragma unroll 1
      for (int part = 0; part < Spec::kWeightParts; ++part) {
#pragma unroll 1
        for (int row = first_row_; row < Spec::kTapsH; row += rows) {
          const int at =
              part * Group::kWeightPart + (row * Spec::kTapsW + column) * kTap;
          ptx::BulkLoad(to + at, from + at, bytes, full);
        }
      }
    }
  }

  const uint4* const packed_;
  const ConvBlock<Spec>& block_;
  const int first_row_;  // of taps
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PHASE_WEIGHTS_CUH_
