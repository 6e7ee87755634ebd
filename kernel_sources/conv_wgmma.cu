// Longer than 400 lines because one class has all orders of a tile's steps.
// Convolution by the warpgroup products of Hopper (sm_90a): the same as
// conv_mma.cu, with 16-bit operands (conv_halves.cuh) that the tensor cores
// read from shared memory themselves.
//
// The patch lies there as [part][channel / 8][row][column][channel % 8], or
// with sixteen channels in the place of eight where a chunk has as many. These
// are one row of a core matrix, or of two that are swizzled (wgmma.cuh), so a
// run of pixels is a matrix, and a filter tap moves its address. With a stride,
// each residue of the coordinates has a patch of its own. Pixels of the halo
// are computed too and not used, but where a tile's rows are eight pixels, each
// an eight of the matrix, or, where pixels are the rows of products, the 64 of
// one (kRunPitch).
//
// Either channels are the rows of the product and pixels its columns
// (kChannelRows; conv_runs.cuh, conv_image_runs.cuh, conv_channel_runs.cuh,
// conv_rounded.cuh or conv_planes.cuh follows), or pixels are the rows and a
// thread has many channels of few pixels (conv_tails.cuh).
//
// One or two warpgroups bring chunks (conv_producer.cuh, conv_lines.cuh,
// conv_turned_lines.cuh), the others multiply; some warps of the former may
// finish earlier images (conv_finish.cuh). Or the blocks of an image hold its
// values until they can be finished (conv_held.cuh).
// Tensor cores round towards zero as they add, so where operands have two parts
// and there are several chunks, or chunks are long (kChains), each part is
// added to the total by an ordinary addition.
#include "conv_beside.cuh"
#include "conv_channel_runs.cuh"
#include "conv_cluster_sums.cuh"
#include "conv_finish.cuh"
#include "conv_held.cuh"
#include "conv_held_windows.cuh"
#include "conv_image_runs.cuh"
#include "conv_joined.cuh"
#include "conv_lines.cuh"
#include "conv_phase_stores.cuh"
#include "conv_planes.cuh"
#include "conv_producer.cuh"
#include "conv_products.cuh"
#include "conv_rounded.cuh"
#include "conv_run_stores.cuh"
#include "conv_runs.cuh"
#include "conv_stages.cuh"
#include "conv_stores.cuh"
#include "conv_tails.cuh"
#include "conv_tile.cuh"
#include "conv_turned_lines.cuh"
#include "conv_warp.cuh"
#include "dependent_launch.cuh"
#include "math.cuh"
#include "pixel_places.cuh"
#include "point.cuh"
#include "reducers.cuh"
#include "storage_types.cuh"
#include "wgmma.cuh"

namespace kiln {

// What sums have yet to be multiplied by, where pixels are the rows of the
// product: a lane has elements of two channels in eight.
template <typename Spec>
class SumScales {
 public:
  __device__ explicit SumScales(const float* scales)
      : scales_(Behind(scales, threadIdx.x % 4 * 2)) {}

  __device__ float operator()(int j, int i) const {
    if constexpr (!Spec::kScales) return Spec::kSumFactor;
    const float2 both = *reinterpret_cast<const float2*>(scales_ + 8 * j);
    return i % 2 == 0 ? both.x : both.y;
  }

 private:
  const float* const scales_;
};

template <typename Spec>
class ConvConsumer {
 public:
  using Tile = ConvTile<Spec>;
  using Stages = ConvStages<Spec>;
  using Products = StageProducts<Spec>;
  static constexpr int kCount = Products::kCount;
  static constexpr bool kHasParts =
      Spec::kInputParts > 1 || Spec::kWeightParts > 1;
  // Whether chunks have sums of their own.
  static constexpr bool kSumsChunks =
      kHasParts && (Tile::kChunks > 1 || Spec::kChains > 1);
  // Whether sums are known to be whole, and their scale, once a tile's only
  // products are begun.
  static constexpr bool kPreparesBeside =
      Tile::kChunks == 1 && Spec::kSumBlocks == 1 && !kSumsChunks;
  // Whether the tail says when the next group may multiply. None follows a
  // stage that comes again.
  static constexpr bool kHoldsTurn = Spec::kTurnHeldFor > 0;
  static_assert(Spec::kSplitPixels == 0 || Spec::kRoundsSums,
                "Other tails store images side by side.");
  static_assert(!kHoldsTurn || kPreparesBeside, "A tail follows each turn.");
  static_assert(Spec::kSumBlocks == 1 ||
                    (Spec::kTilesPerBlock == 1 && Spec::kImageStep == 0 &&
                     Spec::kFinishWarps == 0 && Spec::kImages == 1),
                "A block of a cluster has one tile.");
  static_assert(!kHoldsTurn || Spec::kTail == Tail::kChannels ||
                    Spec::kTail == Tail::kSoftmax,
                "Others do not pass it.");
  static_assert(Spec::kTurnHeldFor <= Spec::kTilesN, "None would pass it.");
  static_assert(!Spec::kChannelRows || Spec::kTail == Tail::kChannels ||
                    Spec::kSumFactor == 1.0f,
                "Others do not multiply by it.");

  __device__ ConvConsumer(const typename Spec::Tensors& t,
                          const ConvStages<Spec>& stages, unsigned number)
      : t_(t),
        stages_(stages),
        number_(number),
        block_(number, image_),
        products_of_stage_(stages, group_m_, group_n_, AbsentTaps(block_)) {
    if constexpr (Spec::kChannelRows && Spec::kScales) {
      const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
      for (int half = 0; half < 2; ++half) {
        weight_factors_[half] = Factors()[row + 8 * half];
      }
    }
  }

  __device__ void Run() {
    Compute();
    if constexpr (Spec::kFinishWarps > 0) {
      ConvFinish<Spec>(t_).Leave(block_.n, stages_.scratch());
    }
  }

 private:
  // The same in all lanes, for the compiler.
  static __device__ int GroupNumber() {
    return __shfl_sync(~0u, threadIdx.x / 128, 0);
  }

  __device__ void Compute() {
    if constexpr (Spec::kFetchesEarly) AwaitPrevious();
    if (Spec::kKeepsWeights) ptx::Wait(stages_.kept_weights_full(), 0);
    Channels<Spec> channels(t_, number_, stages_.channels());
    channels.Fill();
    const int tiles = block_.tiles();
    if constexpr (Spec::kTeams > 0) {
      if constexpr (Spec::kPoolsEarly) {
        ComputeHeldWindows(channels);
      } else {
        ComputeHeld(channels);
      }
    } else if constexpr (Tile::kChannelPhases > 1) {
      ComputePhases(channels);
    } else if constexpr (Spec::kTailInRegisters) {
      RunTail<Spec> tail;
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) {
        SumTile(block_, tile, Preparing(tail, channels, block_, tile));
        if constexpr (kHoldsTurn) {
          tail.Take(t_, block_, tile, sums_.d, stages_.scratch(),
                    [this] { PassTurn(); });
        } else {
          tail.Take(t_, block_, tile, sums_.d,
                    stages_.scratch() + Spec::kStateWords);
        }
        if constexpr (Spec::kStoresSums) {
          Spec::StoreSums(t_, RunStores<Spec>(block_, tile), sums_.d);
        } else if constexpr (Spec::kHasPlanes) {
          ForEachHalf([&](const Planes<Spec>& planes) {
            StorePlanes<Spec>(t_, block_, tile, planes,
                              [](const Point<typename Spec::Index>&,
                                 float value) { return value; });
          });
        }
      }
      tail.Finish(t_, block_, stages_.scratch());
    } else if constexpr (Spec::kRoundsSums) {
      ComputeRounded(channels);
    } else if constexpr (Spec::kReadsBeside) {
      ComputePlanes(channels, BesideTail<Spec>(t_, block_, stages_.scratch()));
    } else if constexpr (Spec::kChannelRows) {
      ComputePlanes(channels, PlaneTail<Spec>(stages_.scratch()));
    } else {
      const WarpTile<Spec> warp;
      ConvTail<Spec> tail;
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) {
        SumTile(block_, tile, [&](float factor) { KnowScales(factor); });
        TakeSums(tail, channels, tile, warp);
      }
      Tile::Sync();
      tail.Finish(t_, block_, warp, stages_.scratch());
    }
  }

  template <typename Tail>
  __device__ void TakeSums(Tail& tail, const Channels<Spec>& channels, int tile,
                           const WarpTile<Spec>& warp) {
    const SumScales<Spec> scales(stages_.sum_scales(group_));
    if constexpr (kHoldsTurn) {
      tail.Take(t_, channels, block_, tile, warp, sums_, scales,
                stages_.scratch(), [this] { PassTurn(); });
    } else {
      tail.Take(t_, channels, block_, tile, warp, sums_, scales,
                stages_.scratch());
    }
  }

  template <typename Tail>
  __device__ void ComputePlanes(const Channels<Spec>& channels, Tail tail) {
    const int tiles = block_.tiles();
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      Scale(SumTile(block_, tile, [](float) {}));
      ForEachHalf([&](const Planes<Spec>& planes) {
        tail.Take(t_, channels, block_, tile, planes, stages_.scratch());
      });
    }
    tail.Finish(t_, block_, stages_.scratch());
  }

  __device__ void ComputeRounded(const Channels<Spec>& channels) {
    const BlockTiles<Spec> tiles(number_);
    RoundedTail<Spec> tail(t_, tiles, stages_.scratch());
    const int count = tiles.Count();
#pragma unroll 1
    for (int number = 0; number < count; ++number) {
      if constexpr (Spec::kResultParts > 0) {
        tail.BringScales(t_, tiles, number);
      }
      Scale(SumTile(tiles.BlockOf(number), tiles.TileOf(number), [](float) {}));
      tail.Take(t_, channels, tiles, number, sums_.d[0]);
    }
  }

  // Where channels are phases of the result's.
  __device__ void ComputePhases(const Channels<Spec>& channels) {
    const BlockTiles<Spec> tiles(number_);
    const int count = tiles.Count();
    RunTail<Spec> tail;
#pragma unroll 1
    for (int number = 0; number < count; ++number) {
      const ConvBlock<Spec> block = tiles.BlockOf(number);
      const int tile = tiles.TileOf(number);
      SumTile(block, tile, Preparing(tail, channels, block, tile));
      tail.Take(t_, block, tile, sums_.d, nullptr);
      Spec::StoreSums(t_, PhaseStores<Spec>(block, tile), sums_.d);
    }
  }

  // Image after image, where there are teams.
  __device__ void ComputeHeld(const Channels<Spec>& channels) {
    const ConvHeld<Spec> held(t_, stages_);
    const bool publishes_alone = ThisTurn() == Turn::kPublish;
    // With the image before the `round`-th.
    const auto take = [&](int step, int round) {
      if (round == 0 || publishes_alone) return;
      held.Take(step, block_.InRound(round - 1), round - 1);
    };
    const int rounds = block_.rounds();
#pragma unroll 1
    for (int round = 0; round <= rounds; ++round) {
      const ConvBlock<Spec> block = block_.InRound(round);
      int step = 0;  // the next
      if (round < rounds) {
        RunTail<Spec> tail;
        SumTile(block, 0, Preparing(tail, channels, block, 0), [&](int chunk) {
          if (chunk == ConvHeld<Spec>::kFirstChunk + step) take(step++, round);
        });
        tail.Take(t_, block, 0, sums_.d, nullptr);
        held.states().Leave(block, round, &tail);
      }
      step = __shfl_sync(~0u, step, 0);
#pragma unroll 1
      while (step < ConvHeld<Spec>::kSteps) take(step++, round);
      if (round < rounds) held.Keep(sums_.d);
    }
    Tile::Sync();
    if (threadIdx.x == 0 && !publishes_alone) held.states().LeaveTag();
  }

  // The same with strips of tiles, of which windows are pooled.
  __device__ void ComputeHeldWindows(const Channels<Spec>& channels) {
    using Held = ConvHeldWindows<Spec>;
    Held held(t_, stages_, block_);
    const int tiles = block_.tiles();
    const int rounds = block_.rounds();
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
      const ConvBlock<Spec> block = block_.InRound(round);
      RunTail<Spec> tail;
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) {
        SumTile(block, tile, Preparing(tail, channels, block, tile));
        held.MakeRoom();
        tail.TakeWindows(t_, block, tile, sums_.d,
                         [&](const typename Held::Windows::Window& window,
                             const Point<typename Spec::Index>&, float pooled,
                             bool) { held.Keep(window, pooled); });
      }
      held.states().Leave(block, round, &tail);
    }
#pragma unroll 1
    for (int rest = 0; rest < tiles + Held::kLag; ++rest) held.MakeRoom();
    Tile::Sync();
    if (threadIdx.x == 0 && ThisTurn() != Turn::kPublish) {
      held.states().LeaveTag();
    }
  }

  // For SumTile: what follows the sums from registers.
  __device__ auto Preparing(RunTail<Spec>& tail, const Channels<Spec>& channels,
                            const ConvBlock<Spec>& block, int tile) {
    return [this, &tail, &channels, &block, tile](float factor) {
      float scales[2];
      ScalesOf(factor, scales);
      tail.Prepare(t_, channels, block, tile, scales);
    };
  }

  // Lays down half of the warp's channels at a time, behind the states of a
  // tail that has any, and calls visit(planes).
  template <typename Visit>
  __device__ void ForEachHalf(Visit visit) {
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      Planes<Spec> planes(stages_.scratch() + Spec::kStateWords, half);
      __syncwarp();  // all have read what was there
      planes.Lay(sums_.d);
      visit(planes);
    }
  }

  // Goes through the stages of a tile, of which other blocks may have the rest;
  // then it returns in one of them alone. Where chunks are summed by the tensor
  // cores, the sums have the scale of the newest that shows (IsLost). Returns
  // what undoes it, and calls prepare(that) before: of a single chunk while its
  // products are on their way, which may be more than once.
  template <typename Prepare>
  __device__ float SumTile(const ConvBlock<Spec>& block, int tile,
                           const Prepare& prepare) {
    return SumTile(block, tile, prepare, [](int) {});
  }
  // The same, with beside(chunk) while a chunk's products are on their way; it
  // may be called more than once.
  template <typename Prepare, typename Beside>
  __device__ float SumTile(const ConvBlock<Spec>& block, int tile,
                           const Prepare& prepare, const Beside& beside) {
    float factor = 1.0f;
    float least = 0.0f;  // of factors that show
    bool is_first = true;
    if constexpr (kSumsChunks) sums_.Clear();
#pragma unroll 1
    for (int chunk = 0; chunk < Tile::kChunks;) {
      const int stage = cursor_.stage;
      ptx::Wait(stages_.full(stage), cursor_.round());
      if constexpr (Spec::kTakesLines || Spec::kTurnsLines ||
                    Spec::kBatchesAhead > 0) {
        AcquireShared();
      }
      const auto note = stages_.note(stage)->Of(image_);
      float stage_factor = Stages::kScalesStages ? note.factors[0] : 1.0f;
      bool is_lost = false;
      if constexpr (Stages::kRescales) {
        is_lost = IsLost(stage_factor, &least);
        if (is_lost || stage_factor == 0.0f) stage_factor = factor;
      }
      if constexpr (kSumsChunks) {
        MultiplyChains(stage, chunk, note, stage_factor, beside);
      } else if (TakeTurn(); is_lost) {
        PassTurn();
      } else {
        if constexpr (Stages::kRescales) {
          if (!is_first && stage_factor != factor) {
            Rescale(factor, stage_factor);
          }
        }
        Multiply(stage, chunk, 0, !is_first, note, sums_.d, [&] {
          if (kPreparesBeside) prepare(stage_factor);
          beside(chunk);
        });
      }
      ptx::Arrive(stages_.empty(stage));
      cursor_.Use();
      if (!note.is_again) {
        cursor_.Advance(1);
        ++chunk;
      }
      if constexpr (kSumsChunks) AddChunk(stage_factor);
      factor = stage_factor;
      is_first = false;
    }
    if (kSumsChunks) factor = 1.0f;
    if constexpr (Spec::kSumBlocks > 1) {
      const ClusterSums<Spec, Spec::kTilesM, kCount> shared(block.sum_part,
                                                            stages_.pixels(0));
      factor = shared.Add(factor, sums_.d);
    }
    if constexpr (Spec::kLaysLines) ScalePixels(block, tile);
    if constexpr (Spec::kJoined > 1) MendJoined(block, tile, factor);
    if (!kPreparesBeside) prepare(factor);
    return factor;
  }

  __device__ void TakeTurn() {
    if (Spec::kWarpgroups == 1) return;
    ptx::Wait(stages_.turn(group_), turns_ ^ (group_ == 0 ? 1 : 0));
    turns_ ^= 1;
  }
  __device__ void PassTurn() {
    if (Spec::kWarpgroups == 1 || threadIdx.x % 32 != 0) return;
    ptx::Arrive(stages_.turn((group_ + 1) % Spec::kWarpgroups));
  }

  // Adds all chains of a chunk but the last, whose sums are left to AddChunk().
  template <typename Beside>
  __device__ void MultiplyChains(int stage, int chunk, const StageNote<1>& note,
                                 float factor, const Beside& beside) {
    // Chains of a single call differ in their code.
    constexpr int kAtOnce = Spec::kProductCalls > 1 ? 1 : Spec::kChains;
#pragma unroll kAtOnce
    for (int chain = 0; chain < Spec::kChains; ++chain) {
      TakeTurn();
      Multiply(stage, chunk, chain, false, note, products_, [&] {
        if (chain == 0) beside(chunk);
      });
      if (chain + 1 < Spec::kChains) AddChunk(factor);
    }
  }

  // Calls prepare() before it waits for the products.
  template <typename Prepare>
  __device__ void Multiply(int stage, int chunk, int chain, bool keep,
                           const StageNote<1>& note,
                           typename Products::Sums& sums,
                           const Prepare& prepare) {
    products_of_stage_.Begin(stage, chunk, chain, keep, note.only_large, sums);
    if (!kHoldsTurn || note.is_again) PassTurn();
    prepare();
    WaitForProducts();
    Products::Hold(sums);
  }

  // Sums that other groups' infinities have made NaN.
  __device__ void MendJoined(const ConvBlock<Spec>& block, int tile,
                             float factor) {
    if (!__any_sync(~0u, JoinedGroups<Spec>::HasNonFinite(sums_))) return;
    JoinedGroups<Spec>(t_, block, tile, factor).Mend(&sums_);
  }

  // Whether the numbers of a stage that has this factor, 0 if it has nothing
  // that is scaled, do not show beside those before, whose sums would overflow
  // with its scale. `*least`: 2^-60 of the largest factor of the tile's.
  static __device__ bool IsLost(float factor, float* least) {
    const bool is_lost = factor != 0.0f && factor < *least;
    *least = fmaxf(*least, factor * PowerOfTwo(-60));
    return __any_sync(~0u, is_lost);
  }

  __device__ void Rescale(float from, float to) {
    const float ratio = RatioOfPowers(from, to);
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums_.d[m][i] *= ratio;
    }
  }

  __device__ void AddChunk(float factor) {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        sums_.d[m][i] = fmaf(products_[m][i], factor, sums_.d[m][i]);
      }
    }
  }

  // Undoes the scales of a tile's pixels (laid_lines.cuh), and before them
  // those of weights that make sums smaller, or what is finite in the end might
  // be infinite meanwhile.
  __device__ void ScalePixels(const ConvBlock<Spec>& block, int tile) {
    const PixelPlaces<Spec> places(block, tile, group_n_);
    const float* const pairs = t_.factors + threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < Spec::kTilesN; ++j) {
      const float2 factors =
          *reinterpret_cast<const float2*>(places.OfEight(pairs, j));
#pragma unroll
      for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& sum = sums_.d[m][4 * j + i];
          sum *= fminf(weight_factors_[i / 2], 1.0f);
          sum *= i % 2 == 0 ? factors.x : factors.y;
        }
      }
    }
  }

  // Undoes the scales that are left: the input's, `factor`, and the weights',
  // those by output channel. Where channels are the rows, as in the next.
  __device__ void Scale(float factor) {
    if constexpr (!Spec::kScales) return;
    float scales[2];
    ScalesOf(factor, scales);
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums_.d[m][i] *= scales[i / 2 % 2];
    }
  }

  // Where pixels are the rows: computes those of all channels, if they are not
  // those of the tile before.
  __device__ void KnowScales(float factor) {
    if constexpr (!Spec::kScales) return;
    if (!__any_sync(~0u, factor != known_factor_)) return;
    known_factor_ = factor;
    Tile::SyncGroup(group_);  // all have used those of the tile before
    for (int i = threadIdx.x % 128; i < Spec::kTilesN * 8; i += 128) {
      stages_.sum_scales(group_)[i] =
          ProductOfPowers(factor, Factors()[i]) * Spec::kSumFactor;
    }
    Tile::SyncGroup(group_);  // they are there
  }

  // For the two channels of a thread.
  __device__ void ScalesOf(float factor, float (&scales)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (Spec::kLaysLines) {
        scales[half] = fmaxf(weight_factors_[half], 1.0f);  // as ScalePixels
      } else {
        scales[half] = Spec::kScales
                           ? ProductOfPowers(factor, weight_factors_[half])
                           : 1.0f;
      }
    }
  }

  // Of the warpgroup's channels.
  __device__ const float* Factors() const {
    constexpr int kGroup = Spec::kChannelRows ? 64 : Spec::kTilesN * 8;
    return reinterpret_cast<const float*>(t_.packed) + Spec::kFactorsAt +
           (block_.group * Tile::kChannelBlocks + block_.channel_block) *
               Tile::kBlockChannels +
           (Spec::kChannelRows ? group_m_ : group_n_) * kGroup;
  }

  const typename Spec::Tensors& t_;
  const ConvStages<Spec>& stages_;
  const unsigned number_;  // of the block
  const int group_ = GroupNumber();
  const int image_ = Spec::kImages == 1 ? 0 : group_ % Spec::kImages;
  const ConvBlock<Spec> block_;  // with this warpgroup's image
  const int group_m_ = group_ % Spec::kGroupsM;
  const int group_n_ = group_ / Spec::kGroupsM;
  const Products products_of_stage_;
  unsigned turns_ = 0;  // taken, modulo 2
  float weight_factors_[2];
  float known_factor_ = 0.0f;  // of the scales in shared memory
  StageCursor<Spec::kStages> cursor_{0};
  Sums<Spec> sums_;
  float products_[kSumsChunks ? Spec::kTilesM : 1][kCount];
};

// Whether the warp has nothing to compute of block `number`; then it has
// applied what follows the normalisation (conv_finish.cuh).
template <typename Spec>
__device__ bool Finish(const typename Spec::Tensors& t, unsigned number) {
  constexpr int kWarps =
      ConvTile<Spec>::kThreads / 32 + Spec::kProducerGroups * 4;
  constexpr int kFirst = kWarps - Spec::kFinishWarps;
  const bool computes = number < ConvFinish<Spec>::kBlocks;
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  if (computes && warp < kFirst) return false;
  ConvFinish<Spec>(t).Apply(number, computes ? warp - kFirst : warp,
                            computes ? Spec::kFinishWarps : kWarps);
  return true;
}

template <typename Spec>
__device__ void ConvWgmma(const typename Spec::Tensors& t) {
  constexpr bool kMoves = Spec::kProducerRegisters > 0;
  if constexpr (!Spec::kFetchesEarly) AwaitPrevious();
  // Of a launch that publishes, only the first row of blocks works (Turn).
  if (Spec::kTeams > 0 && blockIdx.y > 0) return;
  extern __shared__ __align__(256) float dynamic_shared[];
  const ConvStages<Spec> stages(reinterpret_cast<uint4*>(dynamic_shared));
  stages.Init();
  if constexpr (Spec::kJoined > 1) JoinedGroups<Spec>::ClearRest(stages);
  PublishShared();
  const unsigned number = NumberOfBlock<Spec>(t, stages.scratch());
  bool computes = true;
  if constexpr (Spec::kFinishWarps > 0) {
    computes = number < ConvFinish<Spec>::kBlocks;
  }
  // The same in all lanes of a warp, of which the compiler must be told where
  // nothing else says so, or products wait for each other.
  const unsigned thread =
      kMoves ? threadIdx.x : __shfl_sync(~0u, threadIdx.x, 0);
  if (thread >= ConvTile<Spec>::kThreads || !computes) {
    if constexpr (kMoves) KeepRegisters<Spec::kProducerRegisters>();
    if constexpr (Spec::kFinishWarps > 0) {
      if (Finish<Spec>(t, number)) return;
    }
    if constexpr (Spec::kTakesLines) {
      ConvLines<Spec>(t, stages, number).Run();
    } else if constexpr (Spec::kTurnsLines) {
      ConvTurnedLines<Spec>(t, stages, number).Run();
    } else {
      ConvProducer<Spec>(t, stages, number).Run();
    }
  } else {
    if constexpr (kMoves) TakeRegisters<Spec::kConsumerRegisters>();
    ConvConsumer<Spec>(t, stages, number).Run();
  }
}

}  // namespace kiln
