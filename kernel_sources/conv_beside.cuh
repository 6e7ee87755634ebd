// What ops behind a convolution read of tensors as large as its result, where
// channels are the rows of the product (Spec::kReadsBeside): of two neighbours
// in a plane at once, as they store them. A lane sends for what some channels
// need before it goes through those in front, and for that of a tile's first
// channels before the tile's products; so it is on its way meanwhile, and waits
// in registers.
#ifndef KILN_KERNEL_SOURCES_CONV_BESIDE_CUH_
#define KILN_KERNEL_SOURCES_CONV_BESIDE_CUH_

#include "conv_planes.cuh"
#include "store_pairs.cuh"

namespace kiln {

template <typename Spec>
class BesideTail {
 public:
  using Index = typename Spec::Index;
  using Run = Planes<Spec>;

  __device__ BesideTail(const typename Spec::Tensors& t,
                        const ConvBlock<Spec>& block, float* scratch)
      : is_aligned_(Spec::ArePairsAligned(t)) {
    if (block.sum_part == 0) FetchFirst(t, block, 0, Run(scratch, 0));
  }

  // Stores what is made of the sums of half a warp's channels; behind the
  // first half comes the second, and behind that the next tile's first.
  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const Run& planes, float* scratch) {
    const Pixels pixels(block, tile, planes);
    const int half = planes.first / Run::kChannels % 2;
#pragma unroll
    for (int first = 0; first < Run::kChannels; first += kAhead) {
      const Pairs now = next_;
      if (first + kAhead < Run::kChannels) {
        Fetch(t, block, planes, pixels, first + kAhead);
      } else if (tile + half < block.tiles()) {
        FetchFirst(t, block, tile + half, Run(scratch, 1 - half));
      }
      if (is_aligned_) {
        Store<true>(t, channels, block, planes, pixels, first, now);
      } else {
        Store<false>(t, channels, block, planes, pixels, first, now);
      }
    }
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         float*) {}

 private:
  using Pixels = PlanePixels<Spec, 2>;
  static constexpr int kVisits = Pixels::kVisits;
  static constexpr int kAhead = Spec::kChannelsAhead;
  static_assert(Run::kChannels % kAhead == 0);
  static_assert(Spec::kStoresRead && Run::Tile::kColumns % 2 == 0 &&
                    Spec::Output::kW % 2 == 0 && Run::Tile::kColumnStep == 1,
                "Pairs are inside as a whole.");
  struct Pairs {
    typename Spec::BesidePair of[kAhead][kVisits];
  };

  __device__ void FetchFirst(const typename Spec::Tensors& t,
                             const ConvBlock<Spec>& block, int tile,
                             const Run& planes) {
    Fetch(t, block, planes, Pixels(block, tile, planes), 0);
  }
  // Sends for what the channels from `first` on need.
  __device__ void Fetch(const typename Spec::Tensors& t,
                        const ConvBlock<Spec>& block, const Run& planes,
                        const Pixels& pixels, int first) {
    if (is_aligned_) {
      Load<true>(t, block, planes, pixels, first);
    } else {
      Load<false>(t, block, planes, pixels, first);
    }
  }
  template <bool kAligned>
  __device__ void Load(const typename Spec::Tensors& t,
                       const ConvBlock<Spec>& block, const Run& planes,
                       const Pixels& pixels, int first) {
    ForEachPair<Spec, kAhead>(
        block, planes, pixels, first,
        [&](int c, int i, const Point<Index>& at, bool inside) {
          next_.of[c][i] = Spec::template LoadBeside<kAligned>(t, at, inside);
        });
  }

  template <bool kAligned>
  __device__ void Store(const typename Spec::Tensors& t,
                        const Channels<Spec>& channels,
                        const ConvBlock<Spec>& block, const Run& planes,
                        const Pixels& pixels, int first_channel,
                        const Pairs& now) const {
    ForEachPair<Spec, kAhead>(
        block, planes, pixels, first_channel,
        [&](int c, int i, Point<Index> at, bool inside) {
          const float2 sums = PairOfPlane<Spec>(planes, first_channel + c, i);
          const auto channel = channels(at);
          const float first =
              Spec::Read(t, at, sums.x, 1.0f, false, channel,
                         Spec::template OfBeside<0>(now.of[c][i]));
          const float second =
              Spec::Read(t, at, sums.y, 1.0f, false, channel,
                         Spec::template OfBeside<1>(now.of[c][i]));
          if constexpr (kAligned) {
            Spec::StoreRead(t, at, make_float2(first, second), inside);
          } else {
            Spec::StoreRead(t, at, first, inside);
            ++at.i;
            Spec::StoreRead(t, at, second, inside);
          }
        });
  }

  const bool is_aligned_;
  Pairs next_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_BESIDE_CUH_
