// Reductions over the image of each channel after a convolution of
// conv_wgmma.cu where channels are the rows of the product: from registers.
#ifndef KILN_KERNEL_SOURCES_CONV_IMAGE_RUNS_CUH_
#define KILN_KERNEL_SOURCES_CONV_IMAGE_RUNS_CUH_

#include "conv_images.cuh"
#include "conv_run_places.cuh"
#include "merge_lanes.cuh"

namespace kiln {

// A thread adds up the values of a tile, at most 64 of each of its channels,
// and what it has of all tiles by the reducer. Finish merges states in a fixed
// order and leaves one for each channel (LeavePartial).
template <typename Spec>
class RunTail<Spec, Tail::kImages> {
  static_assert(!Spec::kHasPlanes, "Nobody else needs the values.");

 public:
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Places = RunPlaces<Spec>;
  using Reducer = typename Spec::Reducer;
  static constexpr int kCount = Places::kCount;

  // Before Take, for the same tile, whose sums may still be on their way.
  __device__ void Prepare(const typename Spec::Tensors&,
                          const Channels<Spec>& channels,
                          const ConvBlock<Spec>& block, int tile,
                          const float (&scales)[2]) {
    places_.Find(block, tile);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      channels_[half] = channels(places_.PointOfChannel(block, half));
      scales_[half] = scales[half];
    }
  }

  __device__ void Take(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, int,
                       float (&of_phases)[Spec::kTilesM][kCount], float*) {
    static_assert(Spec::kTilesM == 1, "The tile has one phase.");
    const float(&sums)[kCount] = of_phases[0];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Point<Index> at = places_.PointOfChannel(block, half);
      float value = Spec::Neutral();
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
#pragma unroll
        for (int next = 0; next < 2; ++next) {
          const float x = Spec::Read(t, at, sums[i + 2 * half + next],
                                     scales_[half], false, channels_[half]);
          value = Together(Reducer(), value,
                           places_.Takes(i, next) ? x : Spec::Neutral());
        }
      }
      states_[half].Add(value);
    }
  }

  __device__ void Finish(const typename Spec::Tensors& t,
                         const ConvBlock<Spec>& block, float* scratch) {
    auto* const states = reinterpret_cast<Reducer*>(scratch);
    MergeIntoFirstLane<2>(4, states_);
    if (places_.pair == 0) {
      Reducer* const own =
          states + places_.part * Tile::kBlockChannels + places_.first;
      own[0] = states_[0];
      own[8] = states_[1];
    }
    Tile::Sync();
    for (int i = threadIdx.x; i < Tile::kBlockChannels; i += Tile::kThreads) {
      Reducer state;
#pragma unroll 1
      for (int part = 0; part < Spec::kGroupsN; ++part) {
        state.Merge(states[part * Tile::kBlockChannels + i]);
      }
      const int channel = block.first_channel() + i;
      if (channel >= Spec::kStatesOfImage) break;
      LeavePartial(t, block, channel, 0, state);
    }
  }

 private:
  Places places_;
  Reducer states_[2];
  // Of the tile that Prepare was called for.
  typename Spec::Channel channels_[2];
  float scales_[2];
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_IMAGE_RUNS_CUH_
