// Longer than 400 lines because all tails share how lanes go through planes.
// What follows a convolution of conv_wgmma.cu where channels are the rows of
// the product. Each warp has 16 channels of a run of positions; it lays half of
// them down in shared memory as planes and goes through them channel by
// channel, its lanes along the pixels: accesses to memory are contiguous, what
// depends on the channel is read once, and the code is that of one channel.
#ifndef KILN_KERNEL_SOURCES_CONV_PLANES_CUH_
#define KILN_KERNEL_SOURCES_CONV_PLANES_CUH_

#include "conv_partials.cuh"
#include "conv_pooling.cuh"
#include "conv_tail.cuh"
#include "point.cuh"

namespace kiln {

// A warp's planes, of half its channels at a time. A run of positions is whole
// rows, halo included or not (kRunPitch); of each it has all phases of the
// tile, side by side.
template <typename Spec>
class Planes {
 public:
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Tile = ConvTile<Spec>;
  static constexpr int kChannels = 8;
  static constexpr int kPhases = Tile::kPhasesAcross;
  static constexpr int kRun = Spec::kTilesN * 8 * kPhases;
  static constexpr int kRows = kRun / Tile::kRowLength;
  static_assert(kRun % Tile::kRowLength == 0, "Runs are whole rows.");
  // What lanes lay down at once, for two positions, is 8 numbers of a plane, or
  // 16. By that modulo 32 they do so in different banks; by 8 modulo 16, too,
  // for half a warp's lanes take turns. That is less memory, which blocks that
  // hold images are short of.
  static constexpr int kLaid = 8 * kPhases;
  static constexpr int kBanks = Spec::kTeams > 0 ? 16 : 32;
  static constexpr int kPitch =
      (kRun + kBanks - 1 - kLaid) / kBanks * kBanks + kLaid;
  static constexpr int kVisits = (kRun + 31) / 32;
  // Channels gone through at once, which hide each other's latencies.
  static constexpr int kTogether = kVisits <= 4 ? 4 : 2;

  int lane;
  int part;   // of the pixels
  int first;  // channel of the block

  __device__ Planes(float* scratch, int half) : half_(half) {
    const int warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;
    part = warp / (4 * Spec::kGroupsM);
    first = (warp % (4 * Spec::kGroupsM) * 2 + half) * kChannels;
    words_ = scratch + warp * kChannels * kPitch;
  }

  // Element 4 * j + i of `sums` belongs to channel g + 8 * (i / 2) and
  // position 8 * j + 2 * t + i % 2, with g = lane / 4 and t = lane % 4.
  template <int kCount>
  __device__ void Lay(const float (&sums)[kPhases][kCount]) {
    float* const to = words_ + lane / 4 * kPitch + lane % 4 * 2 * kPhases;
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const float2 first = HalfOf(sums[0], i);
      if constexpr (kPhases == 1) {
        *reinterpret_cast<float2*>(to + i * 2) = first;
      } else {
        static_assert(kPhases == 2);
        const float2 second = HalfOf(sums[1], i);
        *reinterpret_cast<float4*>(to + i * 4) =
            make_float4(first.x, second.x, first.y, second.y);
      }
    }
    __syncwarp();
  }

  __device__ float* plane(int channel) const {
    return words_ + channel * kPitch;
  }
  // Whether the block has this channel of the warp.
  __device__ bool HasChannel(const ConvBlock<Spec>& block, int channel) const {
    return Tile::kOutputs % Tile::kBlockChannels == 0 ||
           block.channel_block * Tile::kBlockChannels + first + channel <
               Tile::kOutputs;
  }

 private:
  template <int kCount>
  __device__ float2 HalfOf(const float (&sums)[kCount], int i) const {
    return half_ == 0 ? make_float2(sums[i], sums[i + 1])
                      : make_float2(sums[i + 2], sums[i + 3]);
  }

  const int half_;
  float* words_;
};

// Where the positions of one lane lie in the output, or of kStep neighbours the
// first. Those outside have some place inside, so that reading there does no
// harm; not so their neighbours.
template <typename Spec, int kStep = 1>
struct PlanePixels {
  using Run = Planes<Spec>;
  static constexpr int kVisits = (Run::kRun / kStep + 31) / 32;
  int offset[kVisits];  // in a channel
  int h[kVisits], w[kVisits];
  unsigned inside = 0;  // a bit for each

  __device__ PlanePixels(const ConvBlock<Spec>& block, int tile,
                         const Run& planes) {
#pragma unroll
    for (int i = 0; i < kVisits; ++i) {
      const int position = kStep * (i * 32 + planes.lane);
      const int row = position / Run::Tile::kRowLength;
      const int column = position % Run::Tile::kRowLength;
      const int y = block.y(tile, planes.part * Spec::kPartStep + row);
      const int x = block.x(column);
      const bool is_inside = row < Run::kRows && column < Run::Tile::kColumns &&
                             block.IsInside(y, x);
      h[i] = block.RowInside(y);
      w[i] = block.ColumnInside(x);
      offset[i] = h[i] * Spec::Output::kW + w[i];
      inside |= is_inside ? 1u << i : 0u;
    }
  }

  __device__ bool IsInside(int i) const { return (inside >> i & 1) != 0; }
};

// The first point of a warp's channel `channel`; where the block does not have
// it, of the block's first.
template <typename Spec>
__device__ Point<typename Spec::Index> PointOfPlane(
    const ConvBlock<Spec>& block, const Planes<Spec>& planes, int channel) {
  using Index = typename Spec::Index;
  const int number =
      planes.HasChannel(block, channel) ? planes.first + channel : 0;
  return PointAt<typename Spec::Output, Index>(
      static_cast<Index>(block.n),
      static_cast<Index>(block.first_channel() + number), static_cast<Index>(0),
      static_cast<Index>(0));
}

// Calls visit(k, i, at, inside) for the lane's i-th pair of neighbours in
// `pixels` of each channel `first` + k of a warp, of kCount.
template <typename Spec, int kCount, typename Visit>
__device__ void ForEachPair(const ConvBlock<Spec>& block,
                            const Planes<Spec>& planes,
                            const PlanePixels<Spec, 2>& pixels, int first,
                            const Visit& visit) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const bool is_channel = planes.HasChannel(block, first + k);
    const auto start = PointOfPlane<Spec>(block, planes, first + k);
#pragma unroll
    for (int i = 0; i < PlanePixels<Spec, 2>::kVisits; ++i) {
      auto at = start;
      at.i += pixels.offset[i];
      visit(k, i, at, is_channel && pixels.IsInside(i));
    }
  }
}

// The sums of that pair of a channel; of the last where the lane has none.
template <typename Spec>
__device__ float2 PairOfPlane(const Planes<Spec>& planes, int channel, int i) {
  constexpr int kPairs = Planes<Spec>::kRun / 2;
  return reinterpret_cast<const float2*>(
      planes.plane(channel))[min(i * 32 + planes.lane, kPairs - 1)];
}

// Calls visit(at, &value, inside, i) for each of this lane's positions of one
// channel. One that the block does not have has no positions inside.
template <typename Spec, typename Visit>
__device__ void ForEachPixel(const ConvBlock<Spec>& block,
                             const Planes<Spec>& planes,
                             const PlanePixels<Spec>& pixels, int channel,
                             Visit visit) {
  const bool is_channel = planes.HasChannel(block, channel);
  const auto first = PointOfPlane<Spec>(block, planes, channel);
  float* const plane = planes.plane(channel) + planes.lane;
#pragma unroll
  for (int i = 0; i < Planes<Spec>::kVisits; ++i) {
    if (i * 32 + 32 > Planes<Spec>::kRun &&
        i * 32 + planes.lane >= Planes<Spec>::kRun) {
      continue;
    }
    auto at = first;
    at.i += pixels.offset[i];
    at.h = pixels.h[i];
    at.w = pixels.w[i];
    visit(at, plane[i * 32], is_channel && pixels.IsInside(i), i);
  }
}

// Calls visit(at, pooled) for each whole window of a warp's planes: its place
// in the result, and what is asked for of read_at(at)(number, row, x) of its
// numbers (WindowColumn).
template <typename Spec, typename Pooled, typename ReadAt, typename Visit>
__device__ void ForEachWindow(const ConvBlock<Spec>& block, int tile,
                              const Planes<Spec>& planes, ReadAt read_at,
                              Visit visit) {
  using Index = typename Spec::Index;
  using Run = Planes<Spec>;
  using Column = WindowColumn<Spec, Spec::kRunPitch>;
  constexpr int kAcross =
      (Spec::kTileW - Spec::kPoolW) / Spec::kPoolStrideW + 1;
  constexpr int kColumns = Run::kChannels * kAcross;
  constexpr int kDown = Column::Down(Run::kRows);
  constexpr int kOfThread = Column::OfThread(kDown, kColumns, 32);
  constexpr int kPieces = kDown / kOfThread;
  static_assert(kDown * Spec::kPoolStrideH == Spec::kPartStep,
                "The next part begins with a window.");
#pragma unroll 1
  for (int i = planes.lane; i < kColumns * kPieces; i += 32) {
    const int x = i % kAcross;
    const int y = i / kAcross % kPieces * kOfThread;
    const int channel = i / (kAcross * kPieces);
    const int h =
        block.top(tile) / Spec::kPoolStrideH + planes.part * kDown + y;
    const int w = block.left() / Spec::kPoolStrideW + x;
    if (h >= Pooled::kH || w >= Pooled::kW ||
        !planes.HasChannel(block, channel)) {
      continue;
    }
    auto at = PointAt<Pooled, Index>(
        static_cast<Index>(block.n),
        static_cast<Index>(block.first_channel() + planes.first + channel),
        static_cast<Index>(h), static_cast<Index>(w));
    const int count = static_cast<int>(Pooled::kH) - h;
    Column::template Pool<kOfThread>(
        planes.plane(channel) + y * Spec::kPoolStrideH * Spec::kRunPitch +
            x * Spec::kPoolStrideW,
        count, read_at(at), [&](float pooled) {
          visit(at, pooled);
          at.i += Pooled::kW;
          at.h += 1;
        });
  }
}

// Calls visit(at, &value, inside, i) for this lane's positions of all channels
// of a warp, several channels at a time.
template <typename Spec, typename Visit>
__device__ void ForEachPlanePixel(const ConvBlock<Spec>& block, int tile,
                                  const Planes<Spec>& planes, Visit visit) {
  constexpr int kTogether = Planes<Spec>::kTogether;
  const PlanePixels<Spec> pixels(block, tile, planes);
#pragma unroll 1
  for (int c = 0; c < Planes<Spec>::kChannels; c += kTogether) {
    if (!planes.HasChannel(block, c)) break;
#pragma unroll
    for (int next = 0; next < kTogether; ++next) {
      ForEachPixel<Spec>(block, planes, pixels, c + next, visit);
    }
  }
}

template <typename Spec, Tail kTail = Spec::kTail>
struct PlaneTail;

// Statistics of the groups of group_norm: one state for each channel and part
// of the pixels, merged tile by tile in a fixed order.
template <typename Spec>
struct PlaneTail<Spec, Tail::kMoments> {
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Run = Planes<Spec>;
  using States = Moments (*)[Tile::kBlockChannels];
  using TileSums = PivotedMoments (*)[Tile::kBlockChannels];
  static constexpr int kTogether = Run::kTogether;

  __device__ explicit PlaneTail(float* scratch) {
    for (int half = 0; half < 2; ++half) {
      const Run planes(scratch, half);
      if (planes.lane >= Run::kChannels) continue;
      StatesOf(scratch)[planes.part][planes.first + planes.lane] = Moments();
    }
  }

  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const Run& planes, float* scratch) {
    const PlanePixels<Spec> pixels(block, tile, planes);
    const float count =
        SumOfLanes<32>(static_cast<float>(__popc(pixels.inside)));
    PivotedMoments* const sums = SumsOf(scratch)[planes.part] + planes.first;
#pragma unroll 1
    for (int c = 0; c < Run::kChannels; c += kTogether) {
      if (!planes.HasChannel(block, c)) break;
      SumChannels(t, channels, block, planes, pixels, c, sums);
    }
    __syncwarp();
    if (planes.lane < Run::kChannels) {
      StatesOf(scratch)[planes.part][planes.first + planes.lane].Merge(
          sums[planes.lane].Get(count));
    }
    if constexpr (Spec::kPoolsEarly) {
      PoolEarly(t, channels, block, tile, planes);
    }
  }

  __device__ void Finish(const typename Spec::Tensors& t,
                         const ConvBlock<Spec>& block, float* scratch) {
    Tile::Sync();
    LeavePartials<Spec, Spec::kGroupsN, Tile::kBlockChannels>(
        t, block, StatesOf(scratch));
  }

 private:
  // Of all tiles so far, and behind them those of one tile.
  static __device__ States StatesOf(float* scratch) {
    return reinterpret_cast<States>(scratch);
  }
  static __device__ TileSums SumsOf(float* scratch) {
    return reinterpret_cast<TileSums>(StatesOf(scratch) + Spec::kGroupsN);
  }

  // The pivot is the value of the first position, which is inside the image if
  // any is.
  static __device__ void SumChannels(const typename Spec::Tensors& t,
                                     const Channels<Spec>& channels,
                                     const ConvBlock<Spec>& block,
                                     const Run& planes,
                                     const PlanePixels<Spec>& pixels, int first,
                                     PivotedMoments* sums) {
    PivotedMoments taken[kTogether];
    float values[kTogether][Run::kVisits] = {};
#pragma unroll
    for (int c = 0; c < kTogether; ++c) {
      ForEachPixel<Spec>(
          block, planes, pixels, first + c,
          [&](const Point<Index>& at, float& value, bool inside, int i) {
            values[c][i] = Spec::Read(t, at, value, 1.0f, inside, channels(at));
            if (Spec::kPoolsEarly) value = values[c][i];
          });
    }
#pragma unroll
    for (int c = 0; c < kTogether; ++c) {
      taken[c].pivot = __shfl_sync(~0u, values[c][0], 0);
#pragma unroll
      for (int i = 0; i < Run::kVisits; ++i) {
        taken[c].AddDifferenceIf(pixels.IsInside(i),
                                 values[c][i] - taken[c].pivot);
      }
    }
#pragma unroll
    for (int c = 0; c < kTogether; ++c) {
      taken[c].sum = SumOfLanes<32>(taken[c].sum);
      taken[c].squares = SumOfLanes<32>(taken[c].squares);
      if (planes.lane == 0) sums[first + c] = taken[c];
    }
  }

  // What the channel asks for of each window.
  static __device__ void PoolEarly(const typename Spec::Tensors& t,
                                   const Channels<Spec>& channels,
                                   const ConvBlock<Spec>& block, int tile,
                                   const Run& planes) {
    const SignedAt<Spec> signed_at(channels);
    ForEachWindow<Spec, typename Spec::Windows>(
        block, tile, planes, signed_at,
        [&](const Point<Index>& at, float pooled) {
          Spec::StorePooled(t, at, signed_at.Of(at) * pooled, true);
        });
  }
};

// Pooling of values that the plan has finished.
template <typename Spec>
struct PlaneTail<Spec, Tail::kPool> {
  using Index = typename Spec::Index;
  using Run = Planes<Spec>;

  __device__ explicit PlaneTail(float*) {}

  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const Run& planes, float*) {
    const auto visit = [&](const Point<Index>& at, float pooled) {
      Spec::Element(t, at, pooled);
    };
    if constexpr (Spec::kPoolsSums) {
      ForEachWindow<Spec, typename Spec::TailOutput>(
          block, tile, planes,
          [&](const Point<Index>& at) {
            return SumsOfWindows{t, at, channels(at)};
          },
          visit);
    } else {
      ForEachPlanePixel<Spec>(
          block, tile, planes,
          [&](const Point<Index>& at, float& value, bool inside, int) {
            value = Spec::Read(t, at, value, 1.0f, inside, channels(at));
            Pooling<Spec>::LeaveOut(!inside, &value);
          });
      __syncwarp();
      ForEachWindow<Spec, typename Spec::TailOutput>(
          block, tile, planes, [](const Point<Index>&) { return AsTheyAre(); },
          visit);
    }
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         float*) {}

 private:
  // What the sums in a column of windows count as; `at`: its first window, in
  // the result.
  struct SumsOfWindows {
    const typename Spec::Tensors& t;
    const Point<Index> at;
    const typename Spec::Channel channel;

    __device__ float operator()(float sum, int row, int x) const {
      float value = Spec::Read(t, at, sum, 1.0f, true, channel);
      LeaveOutPastEdges<Spec>(at, row, x, &value);
      return value;
    }
  };
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PLANES_CUH_
