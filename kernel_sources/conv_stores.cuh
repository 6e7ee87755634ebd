// Stores what planes hold (conv_planes.cuh): whole lines of memory, which
// registers are not. Two or four neighbours at once, where all of them are
// inside the output or outside and their place is aligned: fewer accesses.
#ifndef KILN_KERNEL_SOURCES_CONV_STORES_CUH_
#define KILN_KERNEL_SOURCES_CONV_STORES_CUH_

#include "conv_planes.cuh"
#include "store_pairs.cuh"

namespace kiln {

// A lane's vectors of neighbours in each of a warp's planes, which Result
// stores.
template <typename Spec, typename Result>
class PlaneVectors {
 public:
  using Run = Planes<Spec>;
  using Index = typename Spec::Index;
  // Whether they are inside as a whole, and aligned where the tensor is.
  static constexpr int kAll = Run::Tile::kColumns |
                              static_cast<int>(Spec::Output::kW) |
                              Spec::kStepW * Run::kPhases | Spec::kBeforeW;
  static constexpr bool kExist = kAll % 2 == 0 && Run::Tile::kColumnStep == 1;
  // Four, where the lanes have that many of a plane.
  static constexpr int kStep = kAll % 4 == 0 && Run::kRun > 64 ? 4 : 2;

  __device__ PlaneVectors(const ConvBlock<Spec>& block, int tile,
                          const Run& planes)
      : block_(block), planes_(planes), pixels_(block, tile, planes) {}

  // Stores compute(at, value) of all.
  template <typename Compute>
  __device__ void Store(const typename Spec::Tensors& t,
                        const Compute& compute) const {
    const bool is_aligned = Result::template AreAligned<kStep>(t);
#pragma unroll 1
    for (int c = 0; c < Run::kChannels; c += kTogether) {
      if (!planes_.HasChannel(block_, c)) break;
      Neighbours<kStep> vectors[kTogether][kVisits];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
#pragma unroll
        for (int i = 0; i < kVisits; ++i) {
          vectors[k][i] = NeighboursInPlane<Spec, kStep>(planes_, c + k, i);
        }
      }
      ForEach(c, [&](int k, int i, const Point<Index>& at, bool) {
#pragma unroll
        for (float& value : vectors[k][i].of) value = compute(at, value);
      });
      // One branch for all: one for each would keep the stores apart.
      if (is_aligned) {
        ForEach(c, [&](int k, int i, const Point<Index>& at, bool inside) {
          Result::StoreRead(t, at, vectors[k][i], inside);
        });
      } else {
        ForEach(c, [&](int k, int i, Point<Index> at, bool inside) {
#pragma unroll
          for (const float value : vectors[k][i].of) {
            Result::StoreRead(t, at, value, inside);
            ++at.i;
          }
        });
      }
    }
  }

 private:
  using Pixels = PlanePixels<Spec, kStep>;
  static constexpr int kVisits = Pixels::kVisits;
  // Channels gone through at once, which hide each other's latencies. Beside
  // products (conv_held.cuh) there are few registers.
  static constexpr int kTogether = kVisits * kStep <= 4 ? 4
                                   : Spec::kTeams > 0   ? 1
                                                        : 2;

  template <typename Visit>
  __device__ void ForEach(int c, const Visit& visit) const {
    ForEachVector<Spec, kStep, kTogether>(block_, planes_, pixels_, c, visit);
  }

  const ConvBlock<Spec>& block_;
  const Run& planes_;
  const Pixels pixels_;
};

// Stores compute(at, value) of what planes hold, which reads nothing but what
// belongs to a channel: of `at` no more is right. Of a channel that the block
// does not have, `at` is in its first. By Result::StoreRead, several at once
// where Result::AreAligned.
template <typename Spec, typename Result = Spec, typename Compute>
__device__ void StorePlanes(const typename Spec::Tensors& t,
                            const ConvBlock<Spec>& block, int tile,
                            const Planes<Spec>& planes,
                            const Compute& compute) {
  using Index = typename Spec::Index;
  if constexpr (PlaneVectors<Spec, Result>::kExist) {
    PlaneVectors<Spec, Result>(block, tile, planes).Store(t, compute);
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
