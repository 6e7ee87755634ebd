// The products of one warpgroup with what lies in a stage (conv_stages.cuh). As
// tensor cores round towards zero when they add, those of small parts come
// first.
#ifndef KILN_KERNEL_SOURCES_CONV_PRODUCTS_CUH_
#define KILN_KERNEL_SOURCES_CONV_PRODUCTS_CUH_

#include "conv_phase_weights.cuh"
#include "conv_stages.cuh"
#include "wgmma.cuh"

namespace kiln {

// Of a block of a transposed convolution whose filter the stride does not
// divide: 1 if its phase lacks the first row of taps, and 2 if it lacks the
// first column. The same in all lanes, for the compiler.
template <typename Spec>
__device__ int AbsentTaps(const ConvBlock<Spec>& block) {
  if constexpr (!Spec::kHasUnevenPhases) return 0;
  const int row = LacksRow<Spec>(block.phase_h) ? 1 : 0;
  const int column = LacksColumn<Spec>(block.phase_w) ? 2 : 0;
  return __shfl_sync(~0u, row | column, 0);
}

template <typename Spec>
class StageProducts {
 public:
  using Group = GroupTile<Spec>;
  static constexpr int kPhases = Group::Tile::kTilePhases;
  // Whether a tile has all phases of its columns, of which some lack taps or
  // begin at another column; a part of them is alike.
  static constexpr bool kHasAll =
      Spec::kPhasesW > 1 && Spec::kPhasesAcross == Spec::kPhasesW;
  // Sums that a thread has of one product; it has them of kTilesM runs of
  // pixels, of which as many as there are phases in the tile are the same ones.
  static constexpr int kCount = Spec::kTilesN * 4;
  using Sums = float[Spec::kTilesM][kCount];

  // `absent`: what the block's phase lacks (AbsentTaps).
  __device__ StageProducts(const ConvStages<Spec>& stages, int group_m,
                           int group_n, int absent)
      : stages_(stages),
        pixel_part_(Spec::kChannelRows ? group_n : group_m),
        channel_part_(Spec::kChannelRows ? group_m : group_n),
        absent_(absent) {}

  // Sends the products of a chunk's chain (kChains) on their way, as one group:
  // those of all pairs of parts, or of the large parts alone. They are added to
  // what `sums` has where `keep`.
  __device__ void Begin(int stage, int chunk, int chain, bool keep,
                        bool only_large, Sums& sums) const {
    constexpr int kChannels = Spec::kChannelRows ? 64 : Spec::kTilesN * 8;
    const uint4* const pixels =
        stages_.pixels(stage) + Group::UnitsTo(FirstPosition());
    const Descriptor weights =
        At(stages_.weights(stage, chunk) + channel_part_ * kChannels);
    if constexpr (MayLackAllTaps<Spec>()) {
      if (!keep) Clear(sums);
      keep = true;
    }
    Hold(sums);
    BeginProducts();
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
      const Descriptor run = At(pixels + Group::UnitsTo(PositionsTo(m)));
      AddPairs(run, weights + WeightsTo(m), chain, AbsentOf(m), keep,
               only_large, sums[m]);
    }
    CommitProducts();
  }

  // To be called behind the wait for them, too.
  static __device__ void Hold(Sums& sums) {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) HoldSums(sums[m]);
  }

 private:
  static __device__ void Clear(Sums& sums) {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums[m][i] = 0.0f;
    }
  }

  static __device__ Descriptor At(const uint4* units) {
    return MatrixAt<(Spec::kSumBlocks > 1)>(units);
  }
  // Of the patch, where what this warpgroup multiplies begins.
  __device__ int FirstPosition() const {
    if constexpr (Spec::kImages > 1) {
      return pixel_part_ * Spec::kImagePositions;
    } else if constexpr (Spec::kChannelRows) {
      return pixel_part_ * Spec::kPartStep * Spec::kRowPitch;
    }
    return PositionOf(pixel_part_ * (Spec::kTilesM / kPhases * 64));
  }
  // Of the patch, that of the `row`-th row of all products, a multiple of 64,
  // where pixels are these rows (elsewhere it is 0).
  static __device__ constexpr int PositionOf(int row) {
    if constexpr (Spec::kRunPitch == Spec::kRowPitch) {
      return row;
    } else {
      static_assert(64 % Spec::kRunPitch == 0, "A product has whole rows.");
      return row / Spec::kRunPitch * Spec::kRowPitch;
    }
  }
  // From the first run to the m-th, in positions of the patch; of phases some
  // begin a column later (PatchPositions).
  static __device__ constexpr int PositionsTo(int m) {
    if constexpr (!kHasAll) return PositionOf(m / kPhases * 64);
    return PositionOf(m / kPhases * 64) +
           (m % Group::Tile::kPhasesAcross + Spec::kPhaseStartW) /
               Spec::kPhasesW;
  }
  static __device__ constexpr int WeightsTo(int m) {
    return m % kPhases * Group::kPhaseWeights;
  }
  __device__ int AbsentOf(int m) const {
    if constexpr (!kHasAll) return absent_;
    return (absent_ & 1) |
           (LacksColumn<Spec>(m % Group::Tile::kPhasesAcross) ? 2 : 0);
  }

  // Parts of the input and of the weights that are multiplied.
  static constexpr int kPairs = Spec::kInputParts + Spec::kWeightParts - 1;

  // Calls for a pair of a chain.
  static constexpr int kEach =
      Spec::kProductCalls > 1 ? Spec::kProductCalls / Spec::kChains : 1;

  __device__ void AddPairs(Descriptor run, Descriptor weights, int chain,
                           int absent, bool keep, bool only_large,
                           float (&sums)[kCount]) const {
    static_assert(Spec::kLoopsProducts || Spec::kProductCalls == 1,
                  "Only the loop calls more than once for a pair.");
    constexpr int kCalls = kPairs * kEach;
    constexpr int kFirstLarge = kCalls - kEach;
    if constexpr (Spec::kLoopsProducts) {
      // A branch in the loop would make the compiler wait for each product.
      const int first = only_large ? kFirstLarge : 0;
#pragma unroll 1
      for (int call = first; call < kCalls; ++call) {
        AddCall(run, weights, chain, absent, call, keep || call > first, sums);
      }
    } else {
      if (!only_large) {
#pragma unroll
        for (int call = 0; call < kFirstLarge; ++call) {
          AddCall(run, weights, chain, absent, call, keep || call > 0, sums);
        }
      }
      AddCall(run, weights, chain, absent, kFirstLarge,
              keep || (kPairs > 1 && !only_large), sums);
    }
  }
  // Those of one call: pair by pair, sixteen channels after sixteen.
  __device__ void AddCall(Descriptor run, Descriptor weights, int chain,
                          int absent, int call, bool keep,
                          float (&sums)[kCount]) const {
    static_assert(
        Spec::kProductCalls == 1 || Spec::kProductCalls * 16 == Spec::kChunk,
        "A call takes sixteen channels or all.");
    const int pair = call / kEach;
    const int sixteen =
        Spec::kProductCalls > 1 ? chain * kEach + call % kEach : 0;
    const Descriptor pixels = run + (IsSmallInput(pair) ? Group::kPart : 0) +
                              sixteen * Group::kSixteen;
    const Descriptor filter = weights +
                              (IsSmallWeight(pair) ? Group::kWeightPart : 0) +
                              sixteen * 2 * Spec::kBlockChannels;
    constexpr bool kHasChains = Spec::kChains > 1 && Spec::kProductCalls == 1;
    if constexpr (Spec::kHasUnevenPhases && kHasChains) {
      Spec::AddProducts(sums, pixels, filter, Empty(pixels), keep, absent,
                        chain);
    } else if constexpr (Spec::kHasUnevenPhases) {
      Spec::AddProducts(sums, pixels, filter, Empty(pixels), keep, absent);
    } else if constexpr (kHasChains) {
      Spec::AddProducts(sums, pixels, filter, Empty(pixels), keep, chain);
    } else {
      Spec::AddProducts(sums, pixels, filter, Empty(pixels), keep);
    }
  }
  // Of a pair of parts; the last is that of the large ones.
  static __device__ bool IsSmallWeight(int pair) {
    return Spec::kWeightParts > 1 && pair == 0;
  }
  static __device__ bool IsSmallInput(int pair) {
    return Spec::kInputParts > 1 && pair == kPairs - 2;
  }

  // What to add to a matrix whose second half is the zeros: their distance.
  __device__ Descriptor Empty(Descriptor run) const {
    if constexpr (!Group::kHasEmptyHalf) return 0;
    return (At(stages_.zeros()) - run) << 16;
  }

  const ConvStages<Spec>& stages_;
  const int pixel_part_, channel_part_;
  const int absent_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PRODUCTS_CUH_
