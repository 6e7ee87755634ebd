// Pooling of a convolution tile: of values that the plan has finished, or of
// those that a normalisation gathers statistics of
// (jit/compile/commute_pooling.h).
#ifndef KILN_KERNEL_SOURCES_CONV_WINDOWS_CUH_
#define KILN_KERNEL_SOURCES_CONV_WINDOWS_CUH_

#include "conv_pooling.cuh"
#include "conv_tail.cuh"
#include "reducers.cuh"

namespace kiln {

// Windows of kPoolH x kPoolW that lie in the tile side by side. Eight channels
// of each warp at a time go through shared memory, where windows are gathered.
template <typename Spec, typename Pooled>
struct WindowStage {
  static_assert(Spec::kImages == 1, "All warps share what is gathered.");
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  static constexpr int kColumns = (Spec::kTileW + 3) / 4 * 4;
  static constexpr int kPixels = Spec::kTileH * kColumns;
  // 4 modulo 32: the lanes that store at once lie in different banks.
  static constexpr int kPitch = (kPixels + 27) / 32 * 32 + 4;
  static constexpr int kChannels = Spec::kWarpsN * 8;
  static constexpr int kDown = Spec::kTileH / Spec::kPoolH;
  static constexpr int kAcross = Spec::kTileW / Spec::kPoolW;

  // Lays down fragment `slice` of `values`.
  static __device__ void Store(const WarpTile<Spec>& warp,
                               const Sums<Spec>& values, int slice,
                               float* scratch) {
    const int warp_n = warp.first_fragment / Spec::kTilesN;
    float* const first = scratch + (warp_n * 8 + 2 * warp.t) * kPitch;
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      const int m = row / 2;
      const int half = row % 2;
      if (!warp.IsInTile(m, half)) continue;
      float* const to =
          first + warp.row(m, half) * kColumns + warp.column(m, half);
      to[0] = values.d[m][4 * slice + 2 * half];
      to[kPitch] = values.d[m][4 * slice + 2 * half + 1];
    }
  }

  // Calls visit(at, corner) for each whole window: its place in the result and
  // its first value.
  template <typename Visit>
  static __device__ void ForEach(const ConvBlock<Spec>& block, int tile,
                                 int slice, const float* scratch, Visit visit) {
#pragma unroll 1
    for (int i = threadIdx.x; i < kChannels * kDown * kAcross;
         i += Tile::kThreads) {
      const int x = i % kAcross;
      const int y = i / kAcross % kDown;
      const int channel = i / (kDown * kAcross);
      const int in_block =
          (channel / 8 * Spec::kTilesN + slice) * 8 + channel % 8;
      const int h = block.top(tile) / Spec::kPoolH + y;
      const int w = block.left() / Spec::kPoolW + x;
      if (h >= Pooled::kH || w >= Pooled::kW ||
          block.channel_block * Tile::kBlockChannels + in_block >=
              Tile::kOutputs) {
        continue;
      }
      visit(PointAt<Pooled, Index>(block.n, block.first_channel() + in_block, h,
                                   w),
            scratch + channel * kPitch + y * Spec::kPoolH * kColumns +
                x * Spec::kPoolW);
    }
  }

  // A window's values times `sign`.
  static __device__ float Pool(const float* corner, float sign) {
    float pooled = Pooling<Spec>::Neutral();
#pragma unroll 4
    for (int y = 0; y < Spec::kPoolH; ++y) {
      float row[Spec::kPoolW];
      LoadRow(corner, y, row);
#pragma unroll
      for (int x = 0; x < Spec::kPoolW; ++x) {
        pooled = Pooling<Spec>::Join(pooled, sign * row[x]);
      }
    }
    return Pooling<Spec>::Finish(pooled);
  }

  // One row of a window, in one access where it is aligned.
  static __device__ void LoadRow(const float* corner, int y,
                                 float (&row)[Spec::kPoolW]) {
    const float* const from = corner + y * kColumns;
    if constexpr (Spec::kPoolW == 4) {
      const float4 four = *reinterpret_cast<const float4*>(from);
      row[0] = four.x;
      row[1] = four.y;
      row[2] = four.z;
      row[3] = four.w;
    } else if constexpr (Spec::kPoolW == 2) {
      const float2 two = *reinterpret_cast<const float2*>(from);
      row[0] = two.x;
      row[1] = two.y;
    } else {
#pragma unroll
      for (int x = 0; x < Spec::kPoolW; ++x) row[x] = from[x];
    }
  }
};

// Pooling of values that the plan has finished.
template <typename Spec>
struct ConvTail<Spec, Tail::kPool> {
  using Index = typename Spec::Index;
  using Stage = WindowStage<Spec, typename Spec::TailOutput>;

  template <typename Scales>
  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       const Scales& scales, float* scratch) {
    const typename Channels<Spec>::OfLane of_lane(channels, block.n,
                                                  warp.channel());
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool inside) {
          float& value = sums.d[m][4 * j + i];
          value =
              Spec::Read(t, at, value, scales(j, i), inside, of_lane(j, i, at));
        });
#pragma unroll
    for (int slice = 0; slice < Spec::kTilesN; ++slice) {
      Stage::Store(warp, sums, slice, scratch);
      ConvTile<Spec>::Sync();
      Stage::ForEach(block, tile, slice, scratch,
                     [&](const Point<Index>& at, const float* corner) {
                       Spec::Element(t, at, Stage::Pool(corner, 1.0f));
                     });
      ConvTile<Spec>::Sync();
    }
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         const WarpTile<Spec>&, float*) {}
};

// What the channel asks for of each window of `values`.
template <typename Spec>
__device__ void PoolEarly(const typename Spec::Tensors& t,
                          const Channels<Spec>& channels,
                          const ConvBlock<Spec>& block, int tile,
                          const WarpTile<Spec>& warp, const Sums<Spec>& values,
                          float* scratch) {
  using Index = typename Spec::Index;
  using Stage = WindowStage<Spec, typename Spec::Windows>;
#pragma unroll
  for (int slice = 0; slice < Spec::kTilesN; ++slice) {
    Stage::Store(warp, values, slice, scratch);
    ConvTile<Spec>::Sync();
    Stage::ForEach(block, tile, slice, scratch,
                   [&](const Point<Index>& at, const float* corner) {
                     const float sign = Pooling<Spec>::SignOf(channels(at));
                     Spec::StorePooled(t, at, sign * Stage::Pool(corner, sign),
                                       true);
                   });
    ConvTile<Spec>::Sync();
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_WINDOWS_CUH_
