// Pooling of a convolution tile: of values that the plan has finished, or of
// those that a normalisation gathers statistics of
// (jit/compile/commute_pooling.h).
#ifndef KILN_KERNEL_SOURCES_CONV_WINDOWS_CUH_
#define KILN_KERNEL_SOURCES_CONV_WINDOWS_CUH_

#include "conv_pooling.cuh"
#include "conv_tail.cuh"
#include "reducers.cuh"

namespace kiln {

// Windows of kPoolH x kPoolW that lie in the tile, kPoolStrideH x kPoolStrideW
// apart. kPooledFragments fragments of each warp's channels at a time go
// through shared memory, where a team gathers the windows: a warpgroup, where
// it has all pixels of its channels, else all threads. Two places take turns:
// who lays down the next fragments does not wait until these are gathered.
template <typename Spec, typename Pooled>
class WindowStage {
 public:
  static_assert(Spec::kImages == 1, "A team shares what is gathered.");
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;

  // Goes through the values that `warp` has of a tile. Calls visit(at, pooled)
  // for each window: its place in the result, and what is asked for of
  // read_at(at)(value, row, x) of its values (WindowColumn).
  template <typename ReadAt, typename Visit>
  static __device__ void Pool(const ConvBlock<Spec>& block, int tile,
                              const WarpTile<Spec>& warp,
                              const Sums<Spec>& values, float* scratch,
                              ReadAt read_at, Visit visit) {
    constexpr int kRounds = (Spec::kTilesN + kFragments - 1) / kFragments;
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      float* const words = scratch + (tile * kRounds + round) % 2 * kWords;
      const int first = round * kFragments;
      Store(warp, values, first, words);
      Sync();  // all is laid down, and what the other place had is gathered
      ForEach(block, tile, first, words, read_at, visit);
    }
  }

 private:
  static constexpr int kFragments = Spec::kPooledFragments;
  static constexpr int kColumns = (Spec::kTileW + 3) / 4 * 4;
  static constexpr int kPixels = Spec::kTileH * kColumns;
  // 4 modulo 32: the lanes that store at once lie in different banks.
  static constexpr int kPitch = (kPixels + 27) / 32 * 32 + 4;
  using Column = WindowColumn<Spec, kColumns>;
  static constexpr int kAcross =
      (Spec::kTileW - Spec::kPoolW) / Spec::kPoolStrideW + 1;
  static constexpr int kWords = Spec::kWarpsN * kFragments * 8 * kPitch;

  static constexpr bool kIsGroup = Spec::kWarpgroups > 0 && Spec::kWarpsM == 4;
  static constexpr int kThreads = kIsGroup ? 128 : Tile::kThreads;
  static constexpr int kChannels =
      (kIsGroup ? 1 : Spec::kWarpsN) * kFragments * 8;
  static constexpr int kDown = Column::Down(Spec::kTileH);
  static constexpr int kOfThread =
      Column::OfThread(kDown, kChannels* kAcross, kThreads);
  static constexpr int kPieces = kDown / kOfThread;

  static __device__ void Sync() {
    if constexpr (kIsGroup) {
      Tile::SyncGroup(threadIdx.x / 128);
    } else {
      Tile::Sync();
    }
  }

  // Lays down fragments from `first` on.
  static __device__ void Store(const WarpTile<Spec>& warp,
                               const Sums<Spec>& values, int first,
                               float* words) {
    const int warp_n = warp.first_fragment / Spec::kTilesN;
    float* const first_channel =
        words + (warp_n * kFragments * 8 + 2 * warp.t) * kPitch;
#pragma unroll
    for (int row = 0; row < 2 * Spec::kTilesM; ++row) {
      const int m = row / 2;
      const int half = row % 2;
      if (!warp.IsInTile(m, half)) continue;
      float* const to =
          first_channel + warp.row(m, half) * kColumns + warp.column(m, half);
#pragma unroll
      for (int i = 0; i < kFragments && first + i < Spec::kTilesN; ++i) {
        const float* const pair = values.d[m] + 4 * (first + i) + 2 * half;
        to[i * 8 * kPitch] = pair[0];
        to[(i * 8 + 1) * kPitch] = pair[1];
      }
    }
  }

  template <typename ReadAt, typename Visit>
  static __device__ void ForEach(const ConvBlock<Spec>& block, int tile,
                                 int first, const float* words, ReadAt read_at,
                                 Visit visit) {
    const int team = threadIdx.x / kThreads;
#pragma unroll 1
    for (int i = threadIdx.x % kThreads; i < kChannels * kAcross * kPieces;
         i += kThreads) {
      const int x = i % kAcross;
      const int y = i / kAcross % kPieces * kOfThread;
      const int laid = team * kChannels + i / (kAcross * kPieces);
      const int fragment = laid / 8 % kFragments + first;
      const int in_block =
          (laid / (8 * kFragments) * Spec::kTilesN + fragment) * 8 + laid % 8;
      const int h = block.top(tile) / Spec::kPoolStrideH + y;
      const int w = block.left() / Spec::kPoolStrideW + x;
      if (h >= Pooled::kH || w >= Pooled::kW || fragment >= Spec::kTilesN ||
          block.channel_block * Tile::kBlockChannels + in_block >=
              Tile::kOutputs) {
        continue;
      }
      auto at = PointAt<Pooled, Index>(block.n,
                                       block.first_channel() + in_block, h, w);
      Column::template Pool<kOfThread>(
          words + laid * kPitch + y * Spec::kPoolStrideH * kColumns +
              x * Spec::kPoolStrideW,
          static_cast<int>(Pooled::kH) - h, read_at(at), [&](float pooled) {
            visit(at, pooled);
            at.i += Pooled::kW;
            at.h += 1;
          });
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
          Pooling<Spec>::LeaveOut(!inside, &value);
        });
    Stage::Pool(
        block, tile, warp, sums, scratch,
        [](const Point<Index>&) { return AsTheyAre(); },
        [&](const Point<Index>& at, float pooled) {
          Spec::Element(t, at, pooled);
        });
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
  const SignedAt<Spec> signed_at(channels);
  WindowStage<Spec, typename Spec::Windows>::Pool(
      block, tile, warp, values, scratch, signed_at,
      [&](const Point<Index>& at, float pooled) {
        Spec::StorePooled(t, at, signed_at.Of(at) * pooled, true);
      });
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_WINDOWS_CUH_
