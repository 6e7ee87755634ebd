// Reductions over the image of each channel, gathered tile by tile from a
// convolution.
#ifndef KILN_KERNEL_SOURCES_CONV_IMAGES_CUH_
#define KILN_KERNEL_SOURCES_CONV_IMAGES_CUH_

#include "conv_partials.cuh"
#include "conv_tail.cuh"
#include "reducers.cuh"

namespace kiln {

// Two values of what a Reducer takes in, as one that it may take in instead.
__device__ inline float Together(const Sum&, float a, float b) { return a + b; }
__device__ inline float Together(const Amax&, float a, float b) {
  return Maximum(a, b);
}
__device__ inline float Together(const Amin&, float a, float b) {
  return Minimum(a, b);
}

// A thread keeps one value for each of its channels over all tiles of the
// block: of a sum those of at most 128 pixels, added as they come.
// Finish puts those of the block together in a fixed order and leaves a state
// for each channel (LeavePartial).
template <typename Spec>
struct ConvTail<Spec, Tail::kImages> {
  static_assert(Spec::kImages == 1, "All warps share its states.");
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Reducer = typename Spec::Reducer;
  static constexpr int kCount = 2 * Spec::kTilesN;

  float values[kCount];

  __device__ ConvTail() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = Spec::Neutral();
  }

  template <typename Scales>
  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       const Scales& scales, float*) {
    const typename Channels<Spec>::OfLane of_lane(channels, block.n,
                                                  warp.channel());
    ForEachElement<Spec>(
        block, tile, warp,
        [&](int m, int j, int i, const Point<Index>& at, bool inside) {
          const float x = Spec::Read(t, at, sums.d[m][4 * j + i], scales(j, i),
                                     inside, of_lane(j, i, at));
          float& value = values[2 * j + i % 2];
          value = Together(Reducer(), value, inside ? x : Spec::Neutral());
        });
  }

  __device__ void Finish(const typename Spec::Tensors& t,
                         const ConvBlock<Spec>& block,
                         const WarpTile<Spec>& warp, float* scratch) {
    float(*const parts)[Tile::kBlockChannels] =
        reinterpret_cast<float(*)[Tile::kBlockChannels]>(scratch);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      // Lanes with the same t differ in the bits from the third on.
#pragma unroll
      for (int mask = 4; mask < 32; mask *= 2) {
        values[i] = Together(Reducer(), values[i],
                             __shfl_xor_sync(~0u, values[i], mask));
      }
      if (warp.g == 0) {
        parts[warp.warp_m][warp.channel() + i / 2 * 8 + i % 2] = values[i];
      }
    }
    Tile::Sync();
    for (int i = threadIdx.x; i < Tile::kBlockChannels; i += Tile::kThreads) {
      Reducer state;
#pragma unroll 1
      for (int part = 0; part < Spec::kWarpsM; ++part) {
        state.Add(parts[part][i]);
      }
      const int channel = block.first_channel() + i;
      if (channel >= Spec::kStatesOfImage) break;
      LeavePartial(t, block, channel, 0, state);
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_IMAGES_CUH_
