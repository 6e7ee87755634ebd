// Convolution with stride 1 by the warpgroup products of Hopper (sm_90a): the
// same as conv_mma.cu, with operands that the tensor cores read from shared
// memory themselves.
//
// The patch lies there as [part][channel / 4][row][column][channel % 4]. A
// pixel of four channels is one row of a core matrix (wgmma.cuh), so 64 rows of
// A are 64 consecutive pixels of the patch, and a filter tap moves their
// address. Pixels of the halo are computed too and not used.
//
// Accuracy as in conv_mma.cu, but the sums of a chunk are rounded towards zero
// at each step: x1 w1 and the two small products have sums of their own, and
// where there are several chunks each is added to the total by an ordinary
// addition.
#include "conv_pipeline.cuh"
#include "conv_tails.cuh"
#include "conv_tile.cuh"
#include "math.cuh"
#include "mma.cuh"
#include "point.cuh"
#include "reducers.cuh"
#include "storage_types.cuh"
#include "wgmma.cuh"

namespace kiln {

template <typename Spec>
struct WarpgroupTile {
  using Tile = ConvTile<Spec>;
  static constexpr int kChannels = Tile::kBlockChannels;
  // Columns of B: where weights are split, the large parts, then the small.
  static constexpr int kColumns = (Spec::kSplitsWeight ? 2 : 1) * kChannels;
  // Sums of 64 rows that a thread has.
  static constexpr int kSums = kColumns / 2;
  // Pixels between two groups of four channels in the split patch.
  static constexpr int kPositions = Spec::kSplitWords / Spec::kChunk;

  // Pixels from the origin of the patch to those that group `four` of four
  // positions in k multiplies.
  static __device__ constexpr int Offset(int four) {
    constexpr int kFours = Spec::kChunk / 4;
    const int tap = min(four / kFours, Tile::kTaps - 1);
    return four % kFours * kPositions + Tile::kLead +
           tap / Spec::kKernelW * Spec::kDilationH * Tile::kPatchW +
           tap % Spec::kKernelW * Spec::kDilationW;
  }
};

// Brings this thread's part of the patch from planes to pixels of four
// channels, rounded to TF32 or split in two. Returns whether it has infinities
// or NaNs.
template <typename Spec>
__device__ bool SplitPixels(const float* patch, float* split) {
  using Tile = ConvTile<Spec>;
  using Share = PatchShare<Spec, 1, Spec::kChunk / 4>;
  constexpr int kPositions = WarpgroupTile<Spec>::kPositions;
  bool has_non_finite = false;
#pragma unroll 1
  for (int position = Share::First(); position < Tile::kPatch;
       position += Share::kStep) {
#pragma unroll
    for (int i = 0; i < Share::kEach; ++i) {
      const int four = Share::FirstSlice() + i * Share::kSets;
      if (Share::kEach * Share::kSets > Spec::kChunk / 4 &&
          four >= Spec::kChunk / 4) {
        continue;
      }
      unsigned large[4], small[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float x = patch[(four * 4 + k) * Tile::kPitch + position];
        const bool is_finite = fabsf(x) < Infinity();
        has_non_finite = has_non_finite || !is_finite;
        large[k] = is_finite ? NearestTf32(x) : TruncatedTf32(x);
        const float rest = x - __uint_as_float(large[k]);
        small[k] = is_finite ? NearestTf32(rest) : 0;
      }
      uint4* const to =
          reinterpret_cast<uint4*>(split) + four * kPositions + position;
      to[0] = make_uint4(large[0], large[1], large[2], large[3]);
      if constexpr (Spec::kSplitsInput) {
        to[Spec::kSplitWords / 4] =
            make_uint4(small[0], small[1], small[2], small[3]);
      }
    }
  }
  return has_non_finite;
}

// The product of conv_pipeline.cuh by warpgroups.
template <typename Spec>
struct WarpgroupProduct {
  using Tile = ConvTile<Spec>;
  using Group = WarpgroupTile<Spec>;
  // Whether the tensor cores add to the sums themselves.
  static constexpr bool kSumsDirectly =
      !Spec::kSplitsInput && !Spec::kSplitsWeight;

  WarpTile<Spec> warp;
  float products[kSumsDirectly ? 1 : Spec::kTilesM][Group::kSums];

  __device__ bool Split(const float* patch, float* split) const {
    const bool has_non_finite = SplitPixels<Spec>(patch, split);
    PublishShared();
    return has_non_finite;
  }

  __device__ void Start(const float* patch, const unsigned* weights,
                        bool is_first, Sums<Spec>* sums) {
    Hold(sums);
    BeginProducts();
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
      const int first = (warp.warp_m / 4 * Spec::kTilesM + m) * 64;
      if constexpr (kSumsDirectly) {
        MultiplyRows(patch + first * 4, weights, !is_first, sums->d[m]);
      } else {
        MultiplyRows(patch + first * 4, weights, false, products[m]);
      }
    }
    CommitProducts();
  }

  __device__ void Finish(const float*, const unsigned*, bool has_non_finite,
                         bool is_first, Sums<Spec>* sums) {
    WaitForProducts();
    Hold(sums);
    if constexpr (!kSumsDirectly) {
#pragma unroll
      for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
        for (int i = 0; i < Spec::kTilesN * 4; ++i) {
          const float product = Total(products[m], i, has_non_finite);
          float& sum = sums->d[m][i];
          sum = is_first ? product : sum + product;
        }
      }
    }
  }

 private:
  __device__ void Hold(Sums<Spec>* sums) {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
      if constexpr (kSumsDirectly) {
        HoldSums(sums->d[m]);
      } else {
        HoldSums(products[m]);
      }
    }
  }

  static __device__ void MultiplyRows(const float* rows,
                                      const unsigned* weights, bool keep,
                                      float (&products)[Group::kSums]) {
    constexpr int kStepWords = Group::kColumns * 8;
#pragma unroll
    for (int step = 0; step < Tile::kSteps; ++step) {
      const int at = Group::Offset(2 * step);
      const int columns = Group::Offset(2 * step + 1) - at;
      const Descriptor b =
          MatrixAt(weights + step * kStepWords, Group::kColumns);
      Spec::AddProducts(products, MatrixAt(rows + at * 4, columns), b,
                        keep || step > 0);
      if constexpr (Spec::kSplitsInput) {
        Spec::AddSmallProducts(
            products, MatrixAt(rows + Spec::kSplitWords + at * 4, columns), b);
      }
    }
  }

  // The sum of x w from those of its parts. Where x is infinite or NaN the
  // product of the large parts alone is right.
  static __device__ float Total(const float (&products)[Group::kSums], int i,
                                bool has_non_finite) {
    if constexpr (!Spec::kSplitsWeight) return products[i];
    const float large = products[i];
    const float total = large + products[i + Group::kSums / 2];
    return has_non_finite && !(fabsf(large) < Infinity()) ? large : total;
  }
};

template <typename Spec>
__device__ void ConvWgmma(const typename Spec::Tensors& t) {
  extern __shared__ __align__(128) float dynamic_shared[];
  const ConvShared<Spec> shared(dynamic_shared);
  Convolution<Spec, WarpgroupProduct<Spec>>(t, shared, {}).Run();
}

}  // namespace kiln
