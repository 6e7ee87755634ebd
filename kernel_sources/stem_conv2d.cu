// A convolution of at most four channels, as networks that read images begin
// with, on tensor cores (sm_80 and up):
//
//   output[n,c,y,x] = bias[c] + sum over k, i, j of weight[c,k,i,j] *
//     input[n, k, y * stride + i * dilation - padding, ...]
//
// input N x K x H x W, weight C x K x R x S, contiguous and of one type, output
// N x C x P x Q; H, W, P and Q as in PyTorch.
//
// Other kernels' accesses have eight channels of a pixel, most of which would
// be zeros here. The rows of a product are 16 channels of the output, its
// columns eight pixels, and a step through k is four quads, or of f32 two, of
// neighbouring columns (stem_quads.cuh). Which pixels those are is free: so
// that a lane has kVector neighbours of a channel for a store, and four lanes
// as many times four.
//
// Blocks stay: each keeps all weights and goes through tiles, and what it reads
// for the next is on its way while it computes one.
//
// Accuracy. f32 is split as in conv_mma.cu, in the grade tf32 only rounded.
// Tensor cores round towards zero, so where it is split each step's products
// are summed alone, from the smallest, and added by an ordinary addition.
#include "finish_vector.cuh"
#include "opaque.cuh"
#include "point.cuh"
#include "stem_shared.cuh"
#include "tile_place.cuh"
#include "vectors.cuh"
#include "warp_products.cuh"

namespace kiln {

// A lane's place in its block's tile.
template <typename Spec>
struct StemWarp {
  using Tile = StemTile<Spec>;
  int lane, g, t;
  int channel_tile;  // the first of kTilesM
  int row, column;   // of the warp's first pixel, in the tile

  __device__ StemWarp() {
    const int warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;
    g = lane / 4;
    t = lane % 4;
    channel_tile = warp % Spec::kWarpsC * Spec::kTilesM;
    row = warp / Spec::kWarpsC / Spec::kWarpsW * Spec::kRowsOfWarp;
    column = warp / Spec::kWarpsC % Spec::kWarpsW * Tile::kWarpW;
  }
  // Of the column of the filter that the lane has in each step.
  __device__ int filter_column() const { return Tile::kHasWords ? t / 2 : t; }
  __device__ int half() const { return Tile::kHasWords ? t % 2 : 0; }
  // Of a lane's first result, and of number `first` of all that it has.
  static constexpr __device__ int PixelOf(int lane, int first) {
    return first / Spec::kVector * 4 * Spec::kVector + lane * Spec::kVector +
           first % Spec::kVector;
  }
  // Where column g of the first product lies in the patch, of the tap in the
  // lane's column of step k of the filter's first row.
  __device__ int quad(int k) const {
    const int tap = k * Tile::kColumns + filter_column();
    return row * Spec::kStrideH * Tile::kPitch + column +
           PixelOf(g / 2, g % 2) +
           Tile::PlaceOf(Tile::kShift + tap * Spec::kDilationW);
  }
};

// The finite ones of two numbers of TF32, and 0 for others.
__device__ inline uint2 FiniteOnly(const uint2& x) {
  return make_uint2(fabsf(__uint_as_float(x.x)) < Infinity() ? x.x : 0,
                    fabsf(__uint_as_float(x.y)) < Infinity() ? x.y : 0);
}

template <typename Spec>
using StemPlace = TilePlace<typename Spec::Index, StemTile<Spec>>;

// Begins to read what a tile needs.
template <typename Spec>
__device__ void LoadStem(const typename Spec::Tensors& t, bool is_aligned,
                         int tile, StemElements<Spec>* elements) {
  const StemPlace<Spec> place(tile);
  elements->Load(
      t, is_aligned, place.n, place.y * Spec::kStrideH - Spec::kPaddingH,
      place.x * Spec::kStrideW - Spec::kPaddingW - StemTile<Spec>::kShift);
}

// The sums of a warp, without bias: d[m][j] of 16 channels and 8 pixels.
template <typename Spec>
struct StemSums {
  using Tile = StemTile<Spec>;
  static constexpr int kParts = StemQuads<Spec>::kParts;
  float d[Spec::kTilesM][Spec::kTilesN][4] = {};

  // Numbers of the patch that are not finite have no second part, and meet the
  // weights' first one only.
  template <bool kAreFinite>
  __device__ void Add(const StemShared<Spec>& shared,
                      const StemWarp<Spec>& warp, int quad) {
    constexpr int kDown = Tile::kRows * Spec::kDilationH * Tile::kPitch;
#pragma unroll 1
    for (int row = 0; row < Tile::kRowSteps; ++row, quad += kDown) {
#pragma unroll
      for (int k = 0; k < Tile::kColumnSteps; ++k) {
        const bool is_last = k == Tile::kColumnSteps - 1;
        const bool exists = !is_last || Tile::kLastColumns == Tile::kColumns ||
                            warp.filter_column() < Tile::kLastColumns;
        AddStep<kAreFinite>(shared, warp, row * Tile::kColumnSteps + k,
                            quad + warp.quad(k), exists);
      }
    }
  }

  // Of channel g + 8 * half of 16, and number `i` of the lane's pixels.
  __device__ float At(int m, int half, int i) const {
    return d[m][i / 2][half * 2 + i % 2];
  }

 private:
  template <bool kAreFinite>
  __device__ void AddStep(const StemShared<Spec>& shared,
                          const StemWarp<Spec>& warp, int step, int quad,
                          bool exists) {
    const typename Spec::InputType type{};
    uint4 a[kParts][Spec::kTilesM];
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int m = 0; m < Spec::kTilesM; ++m) {
        a[part][m] = shared.weights.Fragment(part, step, warp.channel_tile + m,
                                             warp.lane);
      }
    }
#pragma unroll
    for (int j = 0; j < Spec::kTilesN; ++j) {
      uint2 b[kParts];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        // Not by a weight of 0, which makes a NaN of an infinity.
        const uint2 words = shared.patch.Words(
            part, quad + StemWarp<Spec>::PixelOf(0, 2 * j), warp.half());
        b[part] = exists ? words : make_uint2(0, 0);
      }
#pragma unroll
      for (int m = 0; m < Spec::kTilesM; ++m) {
        if constexpr (kParts == 1) {
          AddWarpProduct(d[m][j], a[0][m], b[0].x, b[0].y, type);
        } else {
          float sum[4] = {};
          const uint2 finite = kAreFinite ? b[0] : FiniteOnly(b[0]);
          AddWarpProduct(sum, a[0][m], b[1].x, b[1].y, type);
          AddWarpProduct(sum, a[1][m], finite.x, finite.y, type);
          AddWarpProduct(sum, a[0][m], b[0].x, b[0].y, type);
#pragma unroll
          for (int i = 0; i < 4; ++i) d[m][j][i] += sum[i];
        }
      }
    }
  }
};

// What follows sums of row y, a vector of a channel at a time.
template <typename Spec>
__device__ void FinishStem(const typename Spec::Tensors& t, bool is_aligned,
                           const StemPlace<Spec>& place,
                           const StemWarp<Spec>& warp, int y,
                           const StemSums<Spec>& sums) {
  using Tile = StemTile<Spec>;
  using Output = typename Spec::Output;
  using Index = typename Spec::Index;
  constexpr int kOfLane = 2 * Spec::kTilesN;
  constexpr bool kHasMoreChannels = Tile::kChannelTiles * 16 > Output::kC;
  constexpr bool kHasMoreColumns = Output::kW % Tile::kTileW != 0;
  static_assert(kOfLane % Spec::kVector == 0 && Output::kW % Spec::kVector == 0,
                "Vectors end with rows.");
#pragma unroll
  for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int c = (warp.channel_tile + m) * 16 + warp.g + half * 8;
      if (kHasMoreChannels && c >= Output::kC) continue;
#pragma unroll
      for (int first = 0; first < kOfLane; first += Spec::kVector) {
        const int x = place.x + warp.column + warp.PixelOf(warp.t, first);
        if (kHasMoreColumns && x >= Output::kW) break;
        float results[Spec::kVector];
#pragma unroll
        for (int k = 0; k < Spec::kVector; ++k) {
          results[k] = sums.At(m, half, first + k);
        }
        FinishVector<Spec>(t, PointAt<Output, Index>(place.n, c, y, x),
                           Opaque(is_aligned), results);
      }
    }
  }
}

template <typename Spec>
__device__ void StemConv2d(const typename Spec::Tensors& t) {
  using Tile = StemTile<Spec>;
  static_assert(!Spec::kWrapsRows, "Rows do not read on into each other.");
  static_assert(sizeof(StemShared<Spec>) == Spec::kSharedBytes,
                "The launch has as much of shared memory.");
  extern __shared__ __align__(16) float dynamic_shared[];
  auto* const shared = reinterpret_cast<StemShared<Spec>*>(dynamic_shared);
  const bool is_aligned = AreAligned(t.input) && Spec::IsAligned(t);
  const StemWarp<Spec> warp;
  StemElements<Spec> elements;
  LoadStem<Spec>(t, is_aligned, blockIdx.x, &elements);
  shared->weights.Load(t);
#pragma unroll 1
  for (int tile = blockIdx.x; tile < Tile::kTiles; tile += gridDim.x) {
    const StemPlace<Spec> place(tile);
    const bool all_are = !__syncthreads_or(!shared->patch.Put(&elements));
    const int next = tile + gridDim.x;
    if (next < Tile::kTiles) LoadStem<Spec>(t, is_aligned, next, &elements);
    int quad = 0;
#pragma unroll 1
    for (int row = 0; row < Spec::kRowsOfWarp; ++row) {
      const int y = place.y + warp.row + row;
      if (y >= Spec::Output::kH) break;
      StemSums<Spec> sums;
      if (StemQuads<Spec>::kParts == 1 || all_are) {
        sums.template Add<true>(*shared, warp, quad);
      } else {
        sums.template Add<false>(*shared, warp, quad);
      }
      FinishStem<Spec>(t, is_aligned, place, warp, y, sums);
      quad += Spec::kStrideH * Tile::kPitch;
    }
    __syncthreads();  // before the next tile's quads
  }
}

}  // namespace kiln
