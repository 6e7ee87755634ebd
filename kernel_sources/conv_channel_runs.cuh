// Reductions over channels after a convolution of conv_wgmma.cu where channels
// are the rows of the product, 64 of them, so that a warpgroup has all: from
// registers. A thread has two channels, so what ops need of a channel is in its
// registers, too.
#ifndef KILN_KERNEL_SOURCES_CONV_CHANNEL_RUNS_CUH_
#define KILN_KERNEL_SOURCES_CONV_CHANNEL_RUNS_CUH_

#include "conv_images.cuh"
#include "conv_reduce.cuh"
#include "conv_run_places.cuh"
#include "ptx_barriers.cuh"

namespace kiln {

// Each thread makes one value of its two for each of its positions, and lays it
// down in shared memory; the warpgroup's threads share the positions out, and
// take what lies above each other.
template <typename Spec>
class RunTail<Spec, Tail::kChannels> {
 public:
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Output = typename Spec::Output;
  using Places = RunPlaces<Spec>;
  using Reducer = typename Spec::Reducer;
  static constexpr int kCount = Places::kCount;

  __device__ void Prepare(const typename Spec::Tensors&,
                          const Channels<Spec>& channels,
                          const ConvBlock<Spec>& block, int,
                          const float (&scales)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      channels_[half] = channels(places_.PointOfChannel(block, half));
      scales_[half] = scales[half] * Spec::kSumFactor;
    }
  }

  // `scratch` is the block's. Calls pass_turn() on the way (conv_tail.cuh).
  template <typename PassTurn = TurnPassed>
  __device__ void Take(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, int tile,
                       const float (&sums)[Spec::kTilesM][kCount],
                       float* scratch,
                       const PassTurn& pass_turn = PassTurn()) const {
    static_assert(Spec::kTilesM == 1, "The tile has one phase.");
    const Values values{
        *this,
        t,
        {places_.PointOfChannel(block, 0), places_.PointOfChannel(block, 1)},
        {scales_[0], scales_[1]},
        sums[0]};
    const Column column(block, tile, places_.part);
    Reducer states[kNeighbours];
    Reduce(values, column, scratch + places_.part * kWords, states, pass_turn);
#pragma unroll
    for (int i = 0; i < kNeighbours; ++i) {
      if (!column.IsInside(i)) continue;
      Spec::Element(t,
                    PointOf<typename Spec::TailOutput>(
                        (static_cast<Index>(block.n) * Output::kH + column.h) *
                            Output::kW +
                        column.w + i),
                    states[i]);
    }
  }

  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         float*) const {}

 private:
  static constexpr int kRun = Spec::kTilesN * 8;  // positions
  static constexpr int kThreads = 128;
  // A row for each two channels, and one more.
  static constexpr int kRows = kThreads / 4;
  static constexpr int kPitch = Spec::kChannelRunPitch;
  static constexpr int kWords = (kRows + 1) * kPitch;
  static constexpr int kEight = 8;  // rows that are taken at once
  // Positions side by side that a thread takes.
  static constexpr int kNeighbours = kRun > kThreads ? 2 : 1;
  static_assert(kRun <= 2 * kThreads, "Nobody would take the others.");
  static_assert(kWords * Spec::kGroupsN == Spec::kScratchWords,
                "The launch asks for this much.");
  static_assert(Tile::kOutputs == 64 && Spec::kGroupsM == 1 &&
                    Spec::kGroups == 1,
                "A warpgroup has all channels.");
  static_assert(!Spec::kHasPlanes, "Nobody else needs the values.");

  // What the ops make of the thread's sums.
  struct Values {
    const RunTail& tail;
    const typename Spec::Tensors& t;
    const Point<Index> at[2];
    float scales[2];
    const float (&sums)[kCount];

    // The same, which the compiler takes for others: it would keep those of
    // before in registers, for a case that is rare.
    __device__ Values Again() const {
      Values again = *this;
      asm volatile("" : "+f"(again.scales[0]), "+f"(again.scales[1]));
      return again;
    }

    // Of sum `i` and the one of the other channel.
    __device__ float operator()(int i, int half) const {
      return Spec::Read(t, at[half], sums[i + 2 * half], scales[half], false,
                        tail.channels_[half]);
    }
  };

  // The positions that a thread takes.
  struct Column {
    bool exists;  // else its place is that of another thread's
    int place;    // in a row
    int h, w;     // of the first

    __device__ Column(const ConvBlock<Spec>& block, int tile, int part) {
      const int first = threadIdx.x % kThreads * kNeighbours;
      exists = first < kRun;
      place = min(first, kRun - kNeighbours);
      h = block.y(tile, part * Spec::kPartStep + first / Spec::kRunPitch);
      w = block.x(first % Spec::kRunPitch);
      const int in_tile = Spec::kTileW - first % Spec::kRunPitch;
      count = exists && h < Output::kH
                  ? min(in_tile, static_cast<int>(Output::kW) - w)
                  : 0;
    }
    __device__ bool IsInside(int i) const { return i < count; }

   private:
    int count;  // of the positions that lie in the output
  };

  // Waits for the warpgroup.
  static __device__ void Sync() { Tile::SyncGroup(Group()); }
  // The same; whether `yes` for any of its threads.
  static __device__ bool Any(bool yes) {
    const bool any = ptx::SyncAny<kThreads>(Tile::GroupBarrier(Group()), yes);
    // The same in all lanes, for the compiler.
    return __any_sync(~0u, any) != 0;
  }
  static __device__ int Group() {
    return __shfl_sync(~0u, threadIdx.x / kThreads, 0);
  }

  // Lays down value_of(i) for each of the thread's positions, that of sum i of
  // its first channel.
  template <typename ValueOf, typename PassTurn = TurnPassed>
  static __device__ void Lay(float* rows, const ValueOf& value_of,
                             const PassTurn& pass_turn = PassTurn()) {
    const int row = threadIdx.x % kThreads / 4;
    float* const to = rows + row * kPitch + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      *reinterpret_cast<float2*>(to + 2 * i) =
          make_float2(value_of(i), value_of(i + 1));
      if (i / 4 + 1 == Spec::kTurnHeldFor) pass_turn();
    }
  }

  // Calls take(i, x) with eight rows of each of the thread's positions, and
  // then of the next.
  template <typename TakeEight>
  static __device__ void ForEachEight(const float* rows, const Column& column,
                                      const TakeEight& take) {
#pragma unroll 2
    for (int row = 0; row < kRows; row += kEight) {
      float x[kNeighbours][kEight];
#pragma unroll
      for (int k = 0; k < kEight; ++k) {
        const float* const from = rows + (row + k) * kPitch + column.place;
        if constexpr (kNeighbours == 2) {
          const float2 both = *reinterpret_cast<const float2*>(from);
          x[0][k] = both.x;
          x[1][k] = both.y;
        } else {
          x[0][k] = *from;
        }
      }
#pragma unroll
      for (int i = 0; i < kNeighbours; ++i) take(i, x[i]);
    }
  }

  template <typename State, typename PassTurn>
  static __device__ void Reduce(const Values& values, const Column& column,
                                float* rows, State (&states)[kNeighbours],
                                const PassTurn& pass_turn) {
    Lay(
        rows,
        [&](int i) { return Together(Reducer(), values(i, 0), values(i, 1)); },
        pass_turn);
    Sync();
    ForEachEight(rows, column, [&](int i, const float(&x)[kEight]) {
      kiln::Take(&states[i], x);
    });
    Sync();
  }

  // As ReduceRows has them (conv_reduce.cuh).
  template <typename PassTurn>
  static __device__ void Reduce(const Values& values, const Column& column,
                                float* rows, LogSumExp (&states)[kNeighbours],
                                const PassTurn& pass_turn) {
    float sums[kNeighbours];
    Lay(
        rows, [&](int i) { return Exp2(values(i, 0)) + Exp2(values(i, 1)); },
        pass_turn);
    Sync();
    AddRows(rows, column, sums);
    bool all_are = true;
#pragma unroll
    for (int i = 0; i < kNeighbours; ++i) {
      states[i].largest = 0.0f;
      states[i].scaled.sum = sums[i];
      all_are = all_are && (IsPlainSum(sums[i]) || !column.IsInside(i));
    }
    if (!Any(!all_are)) return;
    float bases[kNeighbours];
    LayBases(values.Again(), column, rows, bases);
    const Values again = values.Again();
    // Differences of values that are rounded, as the bases are: the compiler
    // would have made one multiply-add of the last product and each difference.
    const float* const of_row = rows + kRows * kPitch + threadIdx.x % 4 * 2;
    Lay(rows, [&](int i) {
      const float base = of_row[i / 4 * 8 + i % 2];
      return Exp2(__fsub_rn(again(i, 0), base)) +
             Exp2(__fsub_rn(again(i, 1), base));
    });
    Sync();
    AddRows(rows, column, sums);
#pragma unroll
    for (int i = 0; i < kNeighbours; ++i) {
      if (IsPlainSum(states[i].scaled.sum)) continue;
      states[i] = SumOfPowersFrom(bases[i], sums[i]);
    }
    Sync();
  }

  // Behind the rows, what the powers of each position are taken from.
  static __device__ void LayBases(const Values& values, const Column& column,
                                  float* rows, float (&bases)[kNeighbours]) {
    Amax most[kNeighbours];
    Lay(rows, [&](int i) { return Maximum(values(i, 0), values(i, 1)); });
    Sync();
    ForEachEight(rows, column, [&](int i, const float(&x)[kEight]) {
      kiln::Take(&most[i], x);
    });
#pragma unroll
    for (int i = 0; i < kNeighbours; ++i) {
      bases[i] = PivotOf(most[i].largest);
      if (column.exists) rows[kRows * kPitch + column.place + i] = bases[i];
    }
    Sync();
  }

  static __device__ void AddRows(const float* rows, const Column& column,
                                 float (&sums)[kNeighbours]) {
#pragma unroll
    for (int i = 0; i < kNeighbours; ++i) sums[i] = 0.0f;
    ForEachEight(rows, column,
                 [&](int i, const float(&x)[kEight]) { sums[i] += SumOf(x); });
  }

  Places places_;
  // Of the tile that Prepare was called for.
  typename Spec::Channel channels_[2];
  float scales_[2];
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_CHANNEL_RUNS_CUH_
