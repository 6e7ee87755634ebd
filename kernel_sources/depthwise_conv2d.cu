// Depthwise convolution: output[n,c,y,x] = bias[c] + sum over ky, kx of
//   input[n, c / kMultiplier, y * stride + ky * dilation - padding, ...] *
//   weight[c, 0, ky, kx]
//
// input N x C x H x W, weight C * kMultiplier x 1 x KH x KW, output
// N x C * kMultiplier x OH x OW, contiguous, any storage type.
//
// A thread has Spec::kVector neighbours along w of each of Spec::kTileH rows of
// one channel: 4, or 1 where rows are no multiple of 4. It walks down the input
// rows under its tile: each is loaded once, four elements an access, and each
// of its elements used for all outputs of the tile that it touches. The filter
// stays in registers; what neighbouring threads share comes from L1.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec>
struct DepthwiseTile {
  static constexpr int kColumns =  // of the input, under a row of outputs
      (Spec::kVector - 1) * Spec::kStrideW +
      (Spec::kKernelW - 1) * Spec::kDilationW + 1;
  static constexpr int kRows = (Spec::kTileH - 1) * Spec::kStrideH +
                               (Spec::kKernelH - 1) * Spec::kDilationH + 1;
  // Loads begin at a whole access: this many columns before the first that is
  // needed.
  static constexpr int kEarly =
      (Spec::kVector - Spec::kPaddingW % Spec::kVector) % Spec::kVector;
  static constexpr int kAccesses =
      (kEarly + kColumns + Spec::kVector - 1) / Spec::kVector;
  static constexpr int kLoaded = kAccesses * Spec::kVector;

  float sums[Spec::kTileH][Spec::kVector] = {};
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

// Zeros stand in for the padding, which is right unless a filter is infinite or
// NaN: then each product is made only where it should be.
template <typename Spec, typename Index>
__device__ void SumTileWithCare(const typename Spec::Tensors& t,
                                const Point<Index>& first, Index plane,
                                DepthwiseTile<Spec>* tile) {
  using Input = typename Spec::Input;
#pragma unroll 1
  for (int k = 0; k < Spec::kKernelH * Spec::kKernelW; ++k) {
    const float tap =
        Load(t.weight, first.c * (Spec::kKernelH * Spec::kKernelW) + k);
    const Index top = first.h * Spec::kStrideH - Spec::kPaddingH +
                      k / Spec::kKernelW * Spec::kDilationH;
    const Index left = first.w * Spec::kStrideW - Spec::kPaddingW +
                       k % Spec::kKernelW * Spec::kDilationW;
#pragma unroll
    for (int y = 0; y < Spec::kTileH; ++y) {
#pragma unroll
      for (int x = 0; x < Spec::kVector; ++x) {
        const Index h = top + y * Spec::kStrideH;
        const Index w = left + x * Spec::kStrideW;
        if (h < 0 || h >= Input::kH || w < 0 || w >= Input::kW) continue;
        const Index i = (plane * Input::kH + h) * Input::kW + w;
        tile->sums[y][x] = fmaf(Load(t.input, i), tap, tile->sums[y][x]);
      }
    }
  }
}

// The sums of the tile whose first output is `first`.
template <typename Spec, typename Index>
__device__ void SumTile(const typename Spec::Tensors& t,
                        const Point<Index>& first, bool is_aligned,
                        DepthwiseTile<Spec>* tile) {
  using Tile = DepthwiseTile<Spec>;
  constexpr int kTaps = Spec::kKernelH * Spec::kKernelW;
  float filter[kTaps];
#pragma unroll
  for (int k = 0; k < kTaps; ++k) {
    filter[k] = Load(t.weight, first.c * kTaps + k);
  }
  float zero = 0.0f;  // NaN if a tap is not finite
#pragma unroll
  for (int k = 0; k < kTaps; ++k) zero = fmaf(filter[k], 0.0f, zero);
  const Index plane = first.n * Spec::Input::kC + first.c / Spec::kMultiplier;
  if (zero != 0.0f) return SumTileWithCare<Spec>(t, first, plane, tile);

  const Index top = first.h * Spec::kStrideH - Spec::kPaddingH;
  const Index left = first.w * Spec::kStrideW - Spec::kPaddingW - Tile::kEarly;
#pragma unroll
  for (int r = 0; r < Tile::kRows; ++r) {
    float row[Tile::kLoaded];
    LoadRow<Spec>(t, plane, top + r, left, is_aligned, row);
#pragma unroll
    for (int y = 0; y < Spec::kTileH; ++y) {
      // The filter's row that input row r is for output row y.
      const int under = r - y * Spec::kStrideH;
      const int ky = under / Spec::kDilationH;
      if (under < 0 || under % Spec::kDilationH != 0) continue;
      if (ky >= Spec::kKernelH) continue;
#pragma unroll
      for (int x = 0; x < Spec::kVector; ++x) {
#pragma unroll
        for (int kx = 0; kx < Spec::kKernelW; ++kx) {
          tile->sums[y][x] = fmaf(
              row[Tile::kEarly + x * Spec::kStrideW + kx * Spec::kDilationW],
              filter[ky * Spec::kKernelW + kx], tile->sums[y][x]);
        }
      }
    }
  }
}

// What follows for one row of a tile.
template <typename Spec, typename Index>
__device__ void FinishRow(const typename Spec::Tensors& t,
                          const Point<Index>& first, bool is_aligned,
                          const float (&sums)[Spec::kVector]) {
  if constexpr (Spec::kVector == 1) {
    Spec::Element(t, first, sums[0]);
  } else {
    typename Spec::template Held<Spec::kVector> held;
    Spec::FetchHeld(t, first, is_aligned, &held);
#pragma unroll
    for (int k = 0; k < Spec::kVector; ++k) {
      Spec::Element(
          held, VectorPointOf<typename Spec::Output, Spec::kVector>(first, k),
          sums[k]);
    }
    Spec::PutHeld(held, first, is_aligned, t);
  }
}

template <typename Spec>
__device__ void DepthwiseConv2d(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Tiles = typename Spec::Tiles;
  static_assert(Output::kC == Spec::Input::kC * Spec::kMultiplier,
                "Every input channel has its own filters.");
  static_assert(
      Output::kW % Spec::kVector == 0 && Spec::Input::kW % Spec::kVector == 0,
      "Vectors must not cross the end of a row.");
  bool is_aligned = true;
  if constexpr (Spec::kVector > 1) {
    is_aligned = Spec::IsAligned(t) && AreAligned(t.input);
  }

#pragma unroll 1
  for (Index i = GridStart<Index>(); i < kNumElements<Tiles>;
       i += GridStride<Index>()) {
    const auto place = PointOf<Tiles>(i);
    const Index h = place.h * Spec::kTileH;
    const auto first =
        PointAt<Output, Index>(place.n, place.c, h, place.w * Spec::kVector);
    DepthwiseTile<Spec> tile;
    SumTile<Spec>(t, first, is_aligned, &tile);
#pragma unroll
    for (int y = 0; y < Spec::kTileH; ++y) {
      if (h + y >= Output::kH) continue;
      const Point<Index> row = {first.i + y * Output::kW, first.n, first.c,
                                h + y, first.w};
      FinishRow<Spec>(t, row, is_aligned, tile.sums[y]);
    }
  }
}

}  // namespace kiln
