// Statistics after a convolution of conv_wgmma.cu where channels are the rows
// of the product and no op before the normalisation reads a whole tensor: from
// registers.
#ifndef KILN_KERNEL_SOURCES_CONV_RUNS_CUH_
#define KILN_KERNEL_SOURCES_CONV_RUNS_CUH_

#include "conv_partials.cuh"
#include "conv_pooling.cuh"
#include "conv_run_places.cuh"
#include "conv_window_rows.cuh"

namespace kiln {

template <typename Spec>
class RunTail<Spec, Tail::kMoments> {
 public:
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Places = RunPlaces<Spec>;
  static constexpr int kCount = Places::kCount;

  // Before Take, for the same tile: what does not depend on its sums, which may
  // still be on their way.
  __device__ void Prepare(const typename Spec::Tensors& t,
                          const Channels<Spec>& channels,
                          const ConvBlock<Spec>& block, int tile,
                          const float (&scales)[2]) {
    places_.Find(block, tile);
    taken_ = places_.CountTaken();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Point<Index> at = places_.PointOfChannel(block, half);
      channels_[half] = channels(at);
      if constexpr (Spec::kPoolsEarly) {
        signs_[half] = Pooling<Spec>::SignOf(channels_[half]);
      }
      biases_[half] = Spec::kComputesFirst ? 0.0f
                                           : Spec::Read(t, at, 0.0f, 1.0f,
                                                        false, channels_[half]);
      scales_[half] = scales[half];
    }
    // Here and no later. Of columns the compiler may know more than that.
    asm volatile(""
                 : "+r"(places_.rows), "+r"(taken_), "+f"(biases_[0]),
                   "+f"(biases_[1]), "+f"(scales_[0]), "+f"(scales_[1]));
  }

  // Of all phases of the tile. Windows of two columns go to memory by way
  // of `kept`, which has KeptWindows::kWords: they are many, and their
  // stores took longer than all else (docs/kernel-notes).
  __device__ void Take(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, int tile,
                       float (&sums)[Spec::kTilesM][kCount], float* kept) {
    if constexpr (!Spec::kPoolsEarly) {
      TakeWindows(t, block, tile, sums, 0);
    } else if constexpr (Spec::kPoolW == 2) {
      const KeptWindows<Spec> windows(kept);
      TakeWindows(t, block, tile, sums,
                  [&](const typename RunWindows<Spec>::Window& window,
                      const Point<Index>&, float pooled,
                      bool) { windows.Keep(window, pooled); });
      windows.ForEach(
          places_, block, tile,
          [&](int, const Point<Index>& at, float pooled, bool inside) {
            Spec::StorePooled(t, at, pooled, inside);
          });
    } else {
      TakeWindows(t, block, tile, sums,
                  [&](const typename RunWindows<Spec>::Window&,
                      const Point<Index>& at, float pooled, bool inside) {
                    Spec::StorePooled(t, at, pooled, inside);
                  });
    }
  }
  // The same; calls store(window, at, pooled, inside) for each window.
  template <typename Store>
  __device__ void TakeWindows(const typename Spec::Tensors& t,
                              const ConvBlock<Spec>& block, int tile,
                              float (&sums)[Spec::kTilesM][kCount],
                              const Store& store) {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
      if (m > 0) {
        places_.FindColumns(block, m);
        taken_ = places_.CountTaken();
      }
      TakeRun(t, block, tile, sums[m], store);
    }
  }

  __device__ void Finish(const typename Spec::Tensors& t,
                         const ConvBlock<Spec>& block, float* scratch) {
    const States states = reinterpret_cast<States>(scratch);
    Leave(states);
    Tile::Sync();
    LeavePartials<Spec, Spec::kGroupsN>(t, block, states);
  }

  // Of each part of the pixels and each channel of the block.
  using States = Moments (*)[Tile::kBlockChannels];

  // Leaves the warp's.
  __device__ void Leave(States states) {
    Moments both[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      slots_[half].sum *= signs_[half];
      both[half] = slots_[half].Get(static_cast<float>(count_));
    }
    MergeIntoFirstLane<2>(4, both);
    if (places_.pair == 0) {
      states[places_.part][places_.first] = both[0];
      states[places_.part][places_.first + 8] = both[1];
    }
  }

 private:
  static constexpr int kPitch = Places::kPitch;
  static constexpr int kRows = Places::kRows;

  template <typename Store>
  __device__ void TakeRun(const typename Spec::Tensors& t,
                          const ConvBlock<Spec>& block, int tile,
                          float (&sums)[kCount], const Store& store) {
    float factors[2], shifts[2];  // from a sum to its difference
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (Spec::kComputesFirst) {
        Compute(t, places_.PointOfChannel(block, half), channels_[half], half,
                scales_[half], sums);
      }
      const float scale = Spec::kComputesFirst ? 1.0f : scales_[half];
      if (count_ == 0 && taken_ > 0) {
        slots_[half].pivot = fmaf(sums[2 * half], scale, biases_[half]);
      }
      factors[half] = scale * signs_[half];
      shifts[half] = (biases_[half] - slots_[half].pivot) * signs_[half];
    }
    Count(factors, shifts, sums);
    count_ += taken_;
    if constexpr (Spec::kPoolsEarly) PoolEarly(block, tile, sums, store);
  }

  // From sums to what the statistics are taken of.
  static __device__ void Compute(const typename Spec::Tensors& t,
                                 const Point<Index>& at,
                                 const typename Spec::Channel& channel,
                                 int half, float scale, float (&sums)[kCount]) {
#pragma unroll
    for (int i = 2 * half; i < kCount; i += 4) {
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        sums[i + next] =
            Spec::Read(t, at, sums[i + next], scale, false, channel);
      }
    }
  }

  // Takes the differences from the pivots, factor * x + shift, of the thread's
  // columns and rows. Where windows follow they remain, with the sign that
  // makes the largest the extreme.
  __device__ void Count(const float (&factors)[2], const float (&shifts)[2],
                        float (&sums)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        float* const both[2] = {&sums[i + next], &sums[i + 2 + next]};
        float differences[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          differences[half] = fmaf(*both[half], factors[half], shifts[half]);
          if constexpr (Spec::kPoolsEarly) *both[half] = differences[half];
        }
        if (Places::SurelyTakes(i, next)) {
          slots_[0].AddDifference(differences[0]);
          slots_[1].AddDifference(differences[1]);
        } else {
          AddDifferencesIf(places_.Takes(i, next), differences, slots_);
        }
      }
    }
  }

  // What is asked of each window.
  template <typename Store>
  __device__ void PoolEarly(const ConvBlock<Spec>& block, int tile,
                            const float (&sums)[kCount],
                            const Store& store) const {
    using Windows = RunWindows<Spec>;
    Windows(places_, block, tile)
        .ForEach([&](const typename Windows::Window& window,
                     const Point<Index>& at, bool inside) {
          float pooled = 0.0f;
#pragma unroll
          for (int i = 0; i < Windows::kSharing; ++i) {
            const int x = window.x + i;
            if (x >= Windows::kFragments) break;
            const float of_window = PoolWindow(sums, window.y, x, window.half);
            if (Windows::MineOf(places_) == i) pooled = of_window;
          }
          store(window, at, pooled * signs_[window.half], inside);
        });
  }

  // Of the window in row `y` of windows and column `x` of fragments, with the
  // sign. Lanes have pivots of their own.
  __device__ float PoolWindow(const float (&sums)[kCount], int y, int x,
                              int half) const {
    using Pool = Pooling<Spec>;
    const int first = 4 * (y * Spec::kPoolH * (kPitch / 8) + x) + 2 * half;
    float pooled = Pool::Join(sums[first], sums[first + 1]);
#pragma unroll
    for (int row = 1; row < Spec::kPoolH; ++row) {
      const int i = first + row * (kPitch / 2);
      pooled = Pool::Join(pooled, Pool::Join(sums[i], sums[i + 1]));
    }
    constexpr float kPivots = Spec::kPoolsMax ? 1 : 2 * Spec::kPoolH;
    pooled = fmaf(slots_[half].pivot, signs_[half] * kPivots, pooled);
#pragma unroll
    for (int mask = 1; mask < Spec::kPoolW / 2; mask *= 2) {
      pooled = Pool::Join(pooled, __shfl_xor_sync(~0u, pooled, mask));
    }
    return Pool::Finish(pooled);
  }

  Places places_;
  PivotedMoments slots_[2];
  float signs_[2] = {1.0f, 1.0f};
  int count_ = 0;  // values taken of each
  // Of the tile that Prepare was called for.
  int taken_;
  typename Spec::Channel channels_[2];
  float biases_[2], scales_[2];
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_RUNS_CUH_
