// Stores what planes hold (conv_planes.cuh): whole lines of memory, which
// registers are not. Two neighbours at once, where both are inside the output
// or both outside and their place is aligned: half as many accesses.
#ifndef KILN_KERNEL_SOURCES_CONV_STORES_CUH_
#define KILN_KERNEL_SOURCES_CONV_STORES_CUH_

#include "conv_planes.cuh"
#include "store_pairs.cuh"

namespace kiln {

// A lane's pairs of neighbours in each of a warp's planes, which Result stores.
template <typename Spec, typename Result>
class PlanePairs {
 public:
  using Run = Planes<Spec>;
  using Index = typename Spec::Index;
  // Whether pairs are inside as a whole, and aligned where the tensor is.
  static constexpr bool kExist = Run::Tile::kColumns % 2 == 0 &&
                                 Spec::Output::kW % 2 == 0 &&
                                 Run::Tile::kColumnStep == 1;

  __device__ PlanePairs(const ConvBlock<Spec>& block, int tile,
                        const Run& planes)
      : block_(block), planes_(planes), pixels_(block, tile, planes) {}

  // Stores compute(at, value) of all.
  template <typename Compute>
  __device__ void Store(const typename Spec::Tensors& t,
                        const Compute& compute) const {
    const bool is_aligned = Result::ArePairsAligned(t);
#pragma unroll 1
    for (int c = 0; c < Run::kChannels; c += kTogether) {
      if (!planes_.HasChannel(block_, c)) break;
      float2 pairs[kTogether][kVisits];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
#pragma unroll
        for (int i = 0; i < kVisits; ++i) {
          pairs[k][i] = PairOfPlane<Spec>(planes_, c + k, i);
        }
      }
      ForEach(c, [&](int k, int i, const Point<Index>& at, bool) {
        float2& pair = pairs[k][i];
        pair = make_float2(compute(at, pair.x), compute(at, pair.y));
      });
      // One branch for all: one for each would keep the stores apart.
      if (is_aligned) {
        ForEach(c, [&](int k, int i, const Point<Index>& at, bool inside) {
          Result::StoreRead(t, at, pairs[k][i], inside);
        });
      } else {
        ForEach(c, [&](int k, int i, Point<Index> at, bool inside) {
          Result::StoreRead(t, at, pairs[k][i].x, inside);
          ++at.i;
          Result::StoreRead(t, at, pairs[k][i].y, inside);
        });
      }
    }
  }

 private:
  using Pixels = PlanePixels<Spec, 2>;
  static constexpr int kVisits = Pixels::kVisits;
  // Channels gone through at once, which hide each other's latencies.
  static constexpr int kTogether = kVisits <= 2 ? 4 : 2;

  template <typename Visit>
  __device__ void ForEach(int c, const Visit& visit) const {
    ForEachPair<Spec, kTogether>(block_, planes_, pixels_, c, visit);
  }

  const ConvBlock<Spec>& block_;
  const Run& planes_;
  const Pixels pixels_;
};

// Stores compute(at, value) of what planes hold, which reads nothing but what
// belongs to a channel: of `at` no more is right. Of a channel that the block
// does not have, `at` is in its first. By Result::StoreRead, two at once where
// Result::ArePairsAligned.
template <typename Spec, typename Result = Spec, typename Compute>
__device__ void StorePlanes(const typename Spec::Tensors& t,
                            const ConvBlock<Spec>& block, int tile,
                            const Planes<Spec>& planes,
                            const Compute& compute) {
  using Index = typename Spec::Index;
  if constexpr (PlanePairs<Spec, Result>::kExist) {
    PlanePairs<Spec, Result>(block, tile, planes).Store(t, compute);
  } else {
    ForEachPlanePixel<Spec>(
        block, tile, planes,
        [&](const Point<Index>& at, float value, bool inside, int) {
          Result::StoreRead(t, at, compute(at, value), inside);
        });
  }
}

template <typename Spec>
struct PlaneTail<Spec, Tail::kStore> {
  using Index = typename Spec::Index;

  __device__ explicit PlaneTail(float*) {}

  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const Planes<Spec>& planes, float*) {
    if constexpr (Spec::kStoresRead) {
      StorePlanes<Spec>(
          t, block, tile, planes, [&](const Point<Index>& at, float value) {
            return Spec::Read(t, at, value, 1.0f, false, channels(at));
          });
    } else {
      ForEachPlanePixel<Spec>(
          block, tile, planes,
          [&](const Point<Index>& at, float& value, bool inside, int) {
            Spec::Element(t, at, value, 1.0f, inside, channels(at));
          });
    }
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         float*) {}
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_STORES_CUH_
