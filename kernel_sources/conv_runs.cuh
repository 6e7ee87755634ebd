// Statistics after a convolution of conv_wgmma.cu where channels are the rows
// of the product and no op before the normalisation reads a whole tensor: from
// registers. A thread has positions 8 * j + 2 * t and the next of channels g
// and g + 8 of its warp, with g = lane / 4 and t = lane % 4. Runs are whole
// rows of the patch, so where they wrap is known when the kernel is compiled.
#ifndef KILN_KERNEL_SOURCES_CONV_RUNS_CUH_
#define KILN_KERNEL_SOURCES_CONV_RUNS_CUH_

#include "conv_partials.cuh"
#include "conv_tail.cuh"
#include "point.cuh"

namespace kiln {

// `value`, but from 0 to `most`.
__device__ constexpr int Within(int most, int value) {
  return value < 0 ? 0 : value < most ? value : most;
}

template <typename Spec>
class RunTail {
 public:
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  static constexpr int kCount = Spec::kTilesN * 4;  // sums of a thread

  __device__ RunTail() {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    pair_ = lane % 4;
    part_ = warp / (4 * Spec::kGroupsM);
    first_ = warp % (4 * Spec::kGroupsM) * 16 + lane / 4;
  }

  // Before Take, for the same tile: what does not depend on its sums, which may
  // still be on their way.
  __device__ void Prepare(const typename Spec::Tensors& t,
                          const Channels<Spec>& channels,
                          const ConvBlock<Spec>& block, int tile,
                          const float (&scales)[2]) {
    const int left_over = PhaseColumns(block) - block.left();
    columns_ = min(Spec::kTileW, left_over) - 2 * pair_;
    rows_ =
        max(0, min(kRows, PhaseRows(block) - block.top(tile) - part_ * kRows));
    taken_ =
        columns_ <= 0 ? 0 : rows_ * (columns_ / 8 * 2 + min(columns_ % 8, 2));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Point<Index> at = PointOfChannel(block, half);
      channels_[half] = channels(at);
      if constexpr (Spec::kHasExtremes) signs_[half] = channels_[half].sign;
      biases_[half] = Spec::kComputesFirst ? 0.0f
                                           : Spec::Read(t, at, 0.0f, 1.0f,
                                                        false, channels_[half]);
      scales_[half] = scales[half];
    }
    // Here and no later. Of columns the compiler may know more than that.
    asm volatile(""
                 : "+r"(rows_), "+r"(taken_), "+f"(biases_[0]),
                   "+f"(biases_[1]), "+f"(scales_[0]), "+f"(scales_[1]));
  }

  __device__ void Take(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, int tile,
                       float (&sums)[kCount]) {
    float factors[2], shifts[2];  // from a sum to its difference
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (Spec::kComputesFirst) {
        Compute(t, PointOfChannel(block, half), channels_[half], half,
                scales_[half], sums);
      }
      const float scale = Spec::kComputesFirst ? 1.0f : scales_[half];
      if (count_ == 0 && taken_ > 0) {
        slots_[half].pivot = fmaf(sums[2 * half], scale, biases_[half]);
      }
      factors[half] = scale * signs_[half];
      shifts[half] = (biases_[half] - slots_[half].pivot) * signs_[half];
    }
    Count(factors, shifts, sums);
    count_ += taken_;
    if constexpr (Spec::kHasExtremes) PoolExtremes(t, block, tile, sums);
  }

  __device__ void Finish(const typename Spec::Tensors& t,
                         const ConvBlock<Spec>& block, float* scratch) {
    Moments(*const states)[Tile::kBlockChannels] =
        reinterpret_cast<Moments(*)[Tile::kBlockChannels]>(scratch);
    Moments both[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      slots_[half].sum *= signs_[half];
      both[half] = slots_[half].Get(static_cast<float>(count_));
    }
    MergeIntoFirstLane<2>(4, both);
    if (pair_ == 0) {
      states[part_][first_] = both[0];
      states[part_][first_ + 8] = both[1];
    }
    Tile::Sync();
    LeavePartials<Spec, Spec::kGroupsN, Tile::kBlockChannels>(t, block, states);
  }

 private:
  static constexpr int kPitch = Spec::kRowPitch;
  static constexpr int kRows = Spec::kTilesN * 8 / kPitch;
  // Of a tile, those that lie in the output wherever the tile does: what knows
  // no condition costs half as much.
  static constexpr int kSureColumns =
      Within(Spec::kTileW, Spec::Output::kW / Spec::kPhasesW -
                               (Tile::kTilesAcross - 1) * Spec::kTileW);
  static constexpr int kSureRows =
      Within(kRows, Spec::Output::kH / Spec::kPhasesH -
                        (Tile::kTilesDown - 1) * Spec::kTileH -
                        (Spec::kGroupsN - 1) * kRows);

  // From sums to what the statistics are taken of.
  static __device__ void Compute(const typename Spec::Tensors& t,
                                 const Point<Index>& at,
                                 const typename Spec::Channel& channel,
                                 int half, float scale, float (&sums)[kCount]) {
#pragma unroll
    for (int i = 2 * half; i < kCount; i += 4) {
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        sums[i + next] =
            Spec::Read(t, at, sums[i + next], scale, false, channel);
      }
    }
  }

  // Takes the differences from the pivots, factor * x + shift, of the thread's
  // columns and rows. Where extremes follow they remain, with the sign that
  // makes the largest the extreme.
  __device__ void Count(const float (&factors)[2], const float (&shifts)[2],
                        float (&sums)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        const int row = 2 * i / kPitch;
        const int column = 2 * i % kPitch + next;
        const bool is_sure_row = row < kSureRows;
        const bool is_sure_column = column + 6 < kSureColumns;
        float* const both[2] = {&sums[i + next], &sums[i + 2 + next]};
        float differences[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          differences[half] = fmaf(*both[half], factors[half], shifts[half]);
          if constexpr (Spec::kHasExtremes) *both[half] = differences[half];
        }
        if (is_sure_row && is_sure_column) {
          slots_[0].AddDifference(differences[0]);
          slots_[1].AddDifference(differences[1]);
        } else {
          const bool is_row = is_sure_row || row < rows_;
          const bool is_column = is_sure_column || column < columns_;
          AddDifferencesIf(is_row && is_column, differences, slots_);
        }
      }
    }
  }

  // Of the phase that the block works on.
  static __device__ int PhaseRows(const ConvBlock<Spec>& block) {
    return (Spec::Output::kH - block.phase_h + Spec::kPhasesH - 1) /
           Spec::kPhasesH;
  }
  static __device__ int PhaseColumns(const ConvBlock<Spec>& block) {
    return (Spec::Output::kW - block.phase_w + Spec::kPhasesW - 1) /
           Spec::kPhasesW;
  }

  // Some point of the channel; the last where there is none.
  __device__ Point<Index> PointOfChannel(const ConvBlock<Spec>& block,
                                         int half) const {
    const int last =
        Tile::kOutputs - 1 - block.channel_block * Tile::kBlockChannels;
    return PointAt<typename Spec::Output, Index>(
        static_cast<Index>(block.n),
        static_cast<Index>(block.first_channel() +
                           min(first_ + 8 * half, last)),
        static_cast<Index>(0), static_cast<Index>(0));
  }

  // The extreme of each window of kPoolH x kPoolW, which lies in one row of
  // fragments; kPoolW is 2, 4 or 8. Lanes that share a window share the windows
  // of as many fragments, so that each stores one.
  __device__ void PoolExtremes(const typename Spec::Tensors& t,
                               const ConvBlock<Spec>& block, int tile,
                               const float (&sums)[kCount]) const {
    using Windows = typename Spec::Windows;
    constexpr int kAcross = kPitch / 8;
    constexpr int kSharing = Spec::kPoolW / 2;
    const int mine = pair_ % kSharing;
    const int column = 8 * mine + 2 * (pair_ - mine);
    const int h = (block.top(tile) + part_ * kRows) / Spec::kPoolH;
    const int w = (block.left() + column) / Spec::kPoolW;
    const int columns =
        min(Spec::kTileW, Windows::kW * Spec::kPoolW - block.left()) - column;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int channel = first_ + 8 * half;
      const bool is_channel =
          Tile::kOutputs % Tile::kBlockChannels == 0 ||
          block.channel_block * Tile::kBlockChannels + channel < Tile::kOutputs;
      const Point<Index> first = PointAt<Windows, Index>(
          static_cast<Index>(block.n),
          static_cast<Index>(block.first_channel() + channel),
          static_cast<Index>(h), static_cast<Index>(w));
#pragma unroll
      for (int y = 0; y < kRows / Spec::kPoolH; ++y) {
        const int fitting = is_channel && h + y < Windows::kH ? columns : 0;
#pragma unroll
        for (int x = 0; x < kAcross; x += kSharing) {
          float extreme = 0.0f;
#pragma unroll
          for (int i = 0; i < kSharing && x + i < kAcross; ++i) {
            const float largest = LargestOf(sums, y, x + i, half);
            if (mine == i) extreme = largest;
          }
          Point<Index> at = first;
          at.i += y * Windows::kW + x * 8 / Spec::kPoolW;
          at.h += y;
          at.w += x * 8 / Spec::kPoolW;
          Spec::StoreExtreme(t, at, extreme * signs_[half], 8 * x < fitting);
        }
      }
    }
  }

  // In the window in row `y` of windows and column `x` of fragments. Lanes have
  // pivots of their own.
  __device__ float LargestOf(const float (&sums)[kCount], int y, int x,
                             int half) const {
    const int first = 4 * (y * Spec::kPoolH * (kPitch / 8) + x) + 2 * half;
    float largest = Maximum(sums[first], sums[first + 1]);
#pragma unroll
    for (int row = 1; row < Spec::kPoolH; ++row) {
      const int i = first + row * (kPitch / 2);
      largest = Maximum(largest, Maximum(sums[i], sums[i + 1]));
    }
    largest = fmaf(slots_[half].pivot, signs_[half], largest);
#pragma unroll
    for (int mask = 1; mask < Spec::kPoolW / 2; mask *= 2) {
      largest = Maximum(largest, __shfl_xor_sync(~0u, largest, mask));
    }
    return largest;
  }

  int pair_;   // t
  int part_;   // of the pixels
  int first_;  // channel of the block
  PivotedMoments slots_[2];
  float signs_[2] = {1.0f, 1.0f};
  int count_ = 0;  // values taken of each
  // Of the tile that Prepare was called for.
  int columns_, rows_, taken_;  // that count
  typename Spec::Channel channels_[2];
  float biases_[2], scales_[2];
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_RUNS_CUH_
