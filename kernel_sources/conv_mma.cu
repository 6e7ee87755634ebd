// Convolution on tensor cores (sm_80 and up), with everything that follows it
// in the plan while the result is still in registers: pointwise ops, then
// stores, statistics, a reduction over channels or images, or pooling
// (conv_tails.cuh).
//
//   output[n,oc,y,x] = sum over ic, ky, kx of
//     input[n, ic, y * stride + ky * dilation - padding, ...] *
//     weight[oc, ic, ky, kx]
//
// A block computes kTilesPerBlock tiles, one below the other; each warp
// 16 * kTilesM pixels x 8 * kTilesN channels of them (conv_tile.cuh). The
// patch and weights of the next chunk are copied while one is multiplied.
//
// Accuracy. Where kSplitsInput and kSplitsWeight, each operand is the sum of
// two TF32 numbers, x = x1 + x2, w = w1 + w2, and x1 w1 + x1 w2 + x2 w1 is
// added up: what is left out is below 2^-22 of a product (Ootomo and Yokota,
// "Recovering single precision accuracy from tensor cores", 2022). Tensor
// cores round towards zero, so each step's products are summed alone, from the
// smallest, and added to the total by an ordinary addition. Where the patch
// has an infinity or a NaN, such an x has no second part and meets w1 only; so
// they come out as in PyTorch.
#include "conv_patch.cuh"
#include "conv_pipeline.cuh"
#include "conv_tails.cuh"
#include "conv_tile.cuh"
#include "math.cuh"
#include "mma.cuh"
#include "point.cuh"
#include "reducers.cuh"
#include "storage_types.cuh"

namespace kiln {

// Four elements of A as TF32 numbers: x, and what is left of it.
template <typename Spec>
struct PatchFragment {
  unsigned large[4];
  unsigned small[4];

  // `pixels` are the addresses in the patch of rows g and g + 8, `depth0` and
  // `depth1` the offsets of columns t and t + 4.
  __device__ void Load(const float* const (&pixels)[2], int depth0,
                       int depth1) {
    Set(0, pixels[0], depth0);
    Set(1, pixels[1], depth0);
    Set(2, pixels[0], depth1);
    Set(3, pixels[1], depth1);
  }

 private:
  __device__ void Set(int i, const float* pixel, int depth) {
    const float* const x = pixel + depth;
    const bool is_padding = ConvPatch<Spec>::kHasPaddedDepth && depth < 0;
    large[i] = is_padding ? 0 : __float_as_uint(x[0]);
    if constexpr (Spec::kSplitsInput) {
      small[i] =
          is_padding ? 0 : __float_as_uint(x[ConvPatch<Spec>::kPatchWords]);
    }
  }
};

// One lane's part of an 8 x 8 matrix of weights.
template <typename Spec>
struct WeightFragment {
  unsigned large[2];
  unsigned small[2];

  __device__ void Load(const unsigned* words) {
    if constexpr (Spec::kSplitsWeight) {
      const uint4 all = *reinterpret_cast<const uint4*>(words);
      large[0] = all.x;
      large[1] = all.y;
      small[0] = all.z;
      small[1] = all.w;
    } else {
      const uint2 all = *reinterpret_cast<const uint2*>(words);
      large[0] = all.x;
      large[1] = all.y;
    }
  }
};

// sum += a * b, one step of 8 through k. Elements of `a` that are no numbers
// meet the large parts of `b` only; unless kHasNonFinite there are none.
template <typename Spec, bool kHasNonFinite>
__device__ void AddStep(float* sum, const PatchFragment<Spec>& a,
                        const WeightFragment<Spec>& b) {
  if constexpr (!Spec::kSplitsInput && !Spec::kSplitsWeight) {
    AddProduct(reinterpret_cast<float(&)[4]>(*sum), a.large, b.large[0],
               b.large[1]);
  } else {
    float step[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if constexpr (Spec::kSplitsInput) {
      AddProduct(step, a.small, b.large[0], b.large[1]);
    }
    if constexpr (Spec::kSplitsWeight && kHasNonFinite) {
      unsigned finite[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool is_finite = fabsf(__uint_as_float(a.large[i])) < Infinity();
        finite[i] = is_finite ? a.large[i] : 0;
      }
      AddProduct(step, finite, b.small[0], b.small[1]);
    } else if constexpr (Spec::kSplitsWeight) {
      AddProduct(step, a.large, b.small[0], b.small[1]);
    }
    AddProduct(step, a.large, b.large[0], b.large[1]);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += step[i];
  }
}

// sums += the products of one chunk in shared memory.
template <typename Spec, bool kHasNonFinite>
__device__ void MultiplyChunk(const float* patch, const unsigned* weights,
                              const int* depth_offsets,
                              const int (&pixels)[Spec::kTilesM][2],
                              const WarpTile<Spec>& warp, Sums<Spec>& sums) {
  using Tile = ConvPatch<Spec>;
  constexpr int kStepWords =
      Spec::kBlockChannels / 8 * 32 * Tile::kFragmentWords;
  weights += (warp.first_fragment * 32 + warp.lane) * Tile::kFragmentWords;
  depth_offsets += warp.t;

#pragma unroll 1
  for (int step = 0; step < Tile::kSteps; ++step) {
    const int depth0 = depth_offsets[step * 8];
    const int depth1 = depth_offsets[step * 8 + 4];
    WeightFragment<Spec> b[Spec::kTilesN];
#pragma unroll
    for (int j = 0; j < Spec::kTilesN; ++j) {
      b[j].Load(weights + step * kStepWords + j * 32 * Tile::kFragmentWords);
    }
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
      PatchFragment<Spec> a;
      a.Load({patch + pixels[m][0], patch + pixels[m][1]}, depth0, depth1);
#pragma unroll
      for (int j = 0; j < Spec::kTilesN; ++j) {
        AddStep<Spec, kHasNonFinite>(&sums.d[m][4 * j], a, b[j]);
      }
    }
  }
}

// Rounds the patch to TF32, or splits it in two: the large parts, and behind
// them the small ones. Returns whether some element of this
// thread is infinite or NaN.
template <typename Spec>
__device__ bool SplitPatch(const float* patch, float* split) {
  using Tile = ConvPatch<Spec>;
  bool has_non_finite = false;
#pragma unroll 2
  for (int i = threadIdx.x * 4; i < Tile::kPatchWords;
       i += Tile::kThreads * 4) {
    const float4 four = *reinterpret_cast<const float4*>(patch + i);
    const float x[4] = {four.x, four.y, four.z, four.w};
    unsigned large[4], small[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const bool is_finite = fabsf(x[k]) < Infinity();
      has_non_finite = has_non_finite || !is_finite;
      large[k] = is_finite ? NearestFiniteTf32(x[k]) : TruncatedTf32(x[k]);
      const float rest = x[k] - __uint_as_float(large[k]);
      small[k] = is_finite ? NearestTf32(rest) : 0;
    }
    *reinterpret_cast<uint4*>(split + i) =
        make_uint4(large[0], large[1], large[2], large[3]);
    if constexpr (Spec::kSplitsInput) {
      *reinterpret_cast<uint4*>(split + Tile::kPatchWords + i) =
          make_uint4(small[0], small[1], small[2], small[3]);
    }
  }
  return has_non_finite;
}

// The product of conv_pipeline.cuh by warps.
template <typename Spec>
struct WarpProduct {
  WarpTile<Spec> warp;
  const int* depth_offsets;
  int pixels[Spec::kTilesM][2];  // offsets in the patch of rows g and g + 8

  __device__ explicit WarpProduct(const int* offsets) : depth_offsets(offsets) {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        pixels[m][half] =
            warp.row(m, half) * Spec::kStrideH * ConvPatch<Spec>::kPatchW +
            warp.column(m, half) * Spec::kStrideW + ConvPatch<Spec>::kLead;
      }
    }
  }

  __device__ bool Split(const float* patch, float* split) const {
    return SplitPatch<Spec>(patch, split);
  }
  __device__ void Multiply(const float* patch, const unsigned* weights,
                           bool has_non_finite, Sums<Spec>* sums) const {
    if (Spec::kSplitsWeight && has_non_finite) {
      MultiplyChunk<Spec, true>(patch, weights, depth_offsets, pixels, warp,
                                *sums);
    } else {
      MultiplyChunk<Spec, false>(patch, weights, depth_offsets, pixels, warp,
                                 *sums);
    }
  }
};

template <typename Spec>
__device__ void ConvMma(const typename Spec::Tensors& t) {
  using Tile = ConvPatch<Spec>;
  extern __shared__ __align__(128) float dynamic_shared[];
  const ConvShared<Spec> shared(dynamic_shared);
  for (int k = threadIdx.x; k < Tile::kSteps * 8; k += Tile::kThreads) {
    shared.depth_offsets()[k] = DepthOffset<Spec>(k);
  }
  Convolution<Spec, WarpProduct<Spec>>(
      t, shared, WarpProduct<Spec>(shared.depth_offsets()))
      .Run();
}

}  // namespace kiln
