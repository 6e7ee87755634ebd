// Depthwise convolution: output[n,c,y,x] = bias[c] + sum over ky, kx of
//   input[n, c / kMultiplier, y * stride + ky * dilation - padding, ...] *
//   weight[c, 0, ky, kx]
//
// input N x C x H x W, weight C * kMultiplier x 1 x KH x KW, output
// N x C * kMultiplier x OH x OW, contiguous, any storage type.
//
// A thread has kTileH x kTileW neighbours of one channel, or what of them lies
// in the output. It walks down the input rows under its tile: each is loaded
// once, kVector elements an access, and each of its elements used for all
// outputs of the tile that it touches. The filter stays in registers; what
// neighbouring threads share comes from L1.
// Of a filter that is too large for that (not Spec::kHoldsFilter), a thread has
// one row at a time, or Spec::kRowTaps of a long one, and loads input rows
// again for each.
//
// Where Spec::kWalks, a thread goes down kTileH rows one after the other
// instead, and loads none twice: depthwise_walk.cuh.
#include "depthwise_taps.cuh"
#include "depthwise_walk.cuh"
#include "finish_vector.cuh"
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec>
struct DepthwiseTile {
  static constexpr int kColumns =  // of the input, under a row of outputs
      (Spec::kTileW - 1) * Spec::kStrideW +
      (Spec::kRowTaps - 1) * Spec::kDilationW + 1;
  static constexpr int kRows = (Spec::kTileH - 1) * Spec::kStrideH +
                               (Spec::kKernelH - 1) * Spec::kDilationH + 1;
  // Loads begin at a whole access: this many columns before the first that is
  // needed.
  static constexpr int kEarly =
      (Spec::kVector - Spec::kPaddingW % Spec::kVector) % Spec::kVector;
  static constexpr int kAccesses =
      (kEarly + kColumns + Spec::kVector - 1) / Spec::kVector;
  static constexpr int kLoaded = kAccesses * Spec::kVector;

  float sums[Spec::kTileH][Spec::kTileW] = {};
};

// The input's row `h` from column `left` on; 0 outside. Accesses are inside or
// outside as a whole.
template <typename Spec, int kLoaded, typename Index>
__device__ void LoadRow(const typename Spec::Tensors& t, Index plane, Index h,
                        Index left, bool is_aligned, float (&row)[kLoaded]) {
  using Input = typename Spec::Input;
  constexpr int kVector = Spec::kVector;
  const bool inside = h >= 0 && h < Input::kH;
  const Index begin = (plane * Input::kH + h) * Input::kW + left;
#pragma unroll
  for (int access = 0; access < kLoaded / kVector; ++access) {
    const Index w = left + access * kVector;
    Vector<typename Spec::InputType, kVector> vector = {};
    if (inside && w >= 0 && w < Input::kW) {
      Fetch(t.input, begin + access * kVector, is_aligned, &vector);
    }
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      row[access * kVector + k] = ToFloat(vector.elements[k]);
    }
  }
}

// Adds to a row of outputs what kTaps of a row of the filter make of one of the
// input.
template <typename Spec, int kTaps>
__device__ void AddRow(const float (&row)[DepthwiseTile<Spec>::kLoaded],
                       const float* filter_row, float (&sums)[Spec::kTileW]) {
#pragma unroll
  for (int x = 0; x < Spec::kTileW; ++x) {
#pragma unroll
    for (int kx = 0; kx < kTaps; ++kx) {
      sums[x] = fmaf(row[DepthwiseTile<Spec>::kEarly + x * Spec::kStrideW +
                         kx * Spec::kDilationW],
                     filter_row[kx], sums[x]);
    }
  }
}

// Where a tile is in the input.
template <typename Spec>
struct TilePlace {
  using Index = typename Spec::Index;
  Index plane;      // of the tensor
  Index top, left;  // of the first access

  __device__ explicit TilePlace(const Point<Index>& first)
      : plane(PlaneOf<Spec>(first)),
        top(first.h * Spec::kStrideH - Spec::kPaddingH),
        left(first.w * Spec::kStrideW - Spec::kPaddingW -
             DepthwiseTile<Spec>::kEarly) {}
};

// The sums of the tile whose first output is `first`, with the whole filter in
// registers. Zeros stand in for the padding, unless a tap is infinite or NaN.
template <typename Spec, typename Index>
__device__ void SumWithFilter(const typename Spec::Tensors& t,
                              const Point<Index>& first, bool is_aligned,
                              DepthwiseTile<Spec>* tile) {
  using Tile = DepthwiseTile<Spec>;
  float filter[Spec::kKernelH * Spec::kKernelW];
  const float zero = LoadFilter<Spec>(t, first.c, filter);
  if (zero != 0.0f) return SumWithCare<Spec>(t, first, tile->sums);
  const TilePlace<Spec> place(first);
#pragma unroll
  for (int r = 0; r < Tile::kRows; ++r) {
    float row[Tile::kLoaded];
    LoadRow<Spec>(t, place.plane, place.top + r, place.left, is_aligned, row);
#pragma unroll
    for (int y = 0; y < Spec::kTileH; ++y) {
      // The filter's row that input row r is for output row y.
      const int under = r - y * Spec::kStrideH;
      const int ky = under / Spec::kDilationH;
      if (under < 0 || under % Spec::kDilationH != 0) continue;
      if (ky >= Spec::kKernelH) continue;
      AddRow<Spec, Spec::kKernelW>(row, filter + ky * Spec::kKernelW,
                                   tile->sums[y]);
    }
  }
}

// Adds what kTaps of row `ky` of the filter make, from column `kx` on. Returns
// ZeroOf of them.
template <typename Spec, int kTaps, typename Index>
__device__ float AddPart(const typename Spec::Tensors& t, Index channel, int ky,
                         int kx, const TilePlace<Spec>& place, bool is_aligned,
                         DepthwiseTile<Spec>* tile) {
  using Tile = DepthwiseTile<Spec>;
  float taps[kTaps];
  LoadTaps<kTaps>(t.weight,
                  (channel * Spec::kKernelH + ky) * Spec::kKernelW + kx, taps);
#pragma unroll
  for (int y = 0; y < Spec::kTileH; ++y) {
    const Index h = place.top + y * Spec::kStrideH + ky * Spec::kDilationH;
    if (h < 0 || h >= Spec::Input::kH) continue;
    float row[Tile::kLoaded];
    LoadRow<Spec>(t, place.plane, h, place.left + kx * Spec::kDilationW,
                  is_aligned, row);
    AddRow<Spec, kTaps>(row, taps, tile->sums[y]);
  }
  return ZeroOf<kTaps>(taps);
}

// The same with one row of the filter at a time, or a part of it.
template <typename Spec, typename Index>
__device__ void SumByFilterRows(const typename Spec::Tensors& t,
                                const Point<Index>& first, bool is_aligned,
                                DepthwiseTile<Spec>* tile) {
  constexpr int kTaps = Spec::kRowTaps;
  constexpr int kRest = Spec::kKernelW % kTaps;
  static_assert(
      kTaps == Spec::kKernelW || kTaps * Spec::kDilationW % Spec::kVector == 0,
      "Parts begin where accesses do.");
  const TilePlace<Spec> place(first);
  float zero = 0.0f;
#pragma unroll 1
  for (int ky = 0; ky < Spec::kKernelH; ++ky) {
#pragma unroll 1
    for (int kx = 0; kx + kTaps <= Spec::kKernelW; kx += kTaps) {
      zero += AddPart<Spec, kTaps>(t, first.c, ky, kx, place, is_aligned, tile);
    }
    if constexpr (kRest > 0) {
      zero += AddPart<Spec, kRest>(t, first.c, ky, Spec::kKernelW - kRest,
                                   place, is_aligned, tile);
    }
  }
  if (zero == 0.0f) return;
  SumWithCare<Spec>(t, first, tile->sums);
}

template <typename Spec, typename Index>
__device__ void SumTile(const typename Spec::Tensors& t,
                        const Point<Index>& first, bool is_aligned,
                        DepthwiseTile<Spec>* tile) {
  if constexpr (Spec::kHoldsFilter) {
    SumWithFilter<Spec>(t, first, is_aligned, tile);
  } else {
    SumByFilterRows<Spec>(t, first, is_aligned, tile);
  }
}

template <typename Spec, typename Index>
__device__ void ComputeTile(const typename Spec::Tensors& t,
                            const Point<Index>& first, bool is_aligned) {
  using Output = typename Spec::Output;
  DepthwiseTile<Spec> tile;
  SumTile<Spec>(t, first, is_aligned, &tile);
#pragma unroll
  for (int y = 0; y < Spec::kTileH; ++y) {
    if (first.h + y >= Output::kH) continue;
#pragma unroll
    for (int x = 0; x < Spec::kTileW; x += Spec::kVector) {
      if constexpr (Output::kW % Spec::kTileW != 0) {
        if (first.w + x >= Output::kW) continue;
      }
      const Point<Index> at = {first.i + y * Output::kW + x, first.n, first.c,
                               first.h + y, first.w + x};
      FinishVector<Spec>(t, at, is_aligned, tile.sums[y] + x);
    }
  }
}

// All tiles, each by a thread.
template <typename Spec>
__device__ void ComputeTiles(const typename Spec::Tensors& t, bool is_aligned) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Tiles = typename Spec::Tiles;
#pragma unroll 1
  for (Index i = GridStart<Index>(); i < kNumElements<Tiles>;
       i += GridStride<Index>()) {
    const auto place = PointOf<Tiles>(i);
    const auto first = PointAt<Output, Index>(
        place.n, place.c, place.h * Spec::kTileH, place.w * Spec::kTileW);
    ComputeTile<Spec>(t, first, is_aligned);
  }
}

template <typename Spec>
__device__ void DepthwiseConv2d(const typename Spec::Tensors& t) {
  using Output = typename Spec::Output;
  static_assert(Output::kC == Spec::Input::kC * Spec::kMultiplier,
                "Every input channel has its own filters.");
  static_assert(Spec::kTileW % Spec::kVector == 0 &&
                    Output::kW % Spec::kVector == 0 &&
                    Spec::Input::kW % Spec::kVector == 0,
                "Vectors must not cross the end of a row.");
  bool is_aligned = true;
  if constexpr (Spec::kVector > 1) {
    is_aligned = Spec::IsAligned(t) && AreAligned(t.input);
  }
  if constexpr (Spec::kWalks) {
    WalkAll<Spec>(t, is_aligned);
  } else {
    ComputeTiles<Spec>(t, is_aligned);
  }
}

}  // namespace kiln
