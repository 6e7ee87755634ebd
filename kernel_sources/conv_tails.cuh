// All that may follow a convolution in its kernel (conv_tail.cuh).
#ifndef KILN_KERNEL_SOURCES_CONV_TAILS_CUH_
#define KILN_KERNEL_SOURCES_CONV_TAILS_CUH_

#include "conv_images.cuh"
#include "conv_pixel_stage.cuh"
#include "conv_reduce.cuh"
#include "conv_softmax.cuh"
#include "conv_statistics.cuh"
#include "conv_tail.cuh"
#include "conv_windows.cuh"

namespace kiln {

template <typename Spec>
struct ConvTail<Spec, Tail::kStore> {
  using Index = typename Spec::Index;

  template <typename Scales>
  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const ConvBlock<Spec>& block, int tile,
                       const WarpTile<Spec>& warp, Sums<Spec>& sums,
                       const Scales& scales, float* scratch) {
    if constexpr (Spec::kStagesResults) {
      PixelStage<Spec>(block, tile, warp, scratch)
          .ForEach(
              [&](int row, int column) {
                return sums.At(row, column) *
                       scales(column / 2, row % 2 * 2 + column % 2);
              },
              [&](const Point<Index>& at, float value, bool inside) {
                Spec::Element(t, at, value, 1.0f, inside, channels(at));
              });
    } else {
      const typename Channels<Spec>::OfLane of_lane(channels, block.n,
                                                    warp.channel());
      ForEachElement<Spec>(
          block, tile, warp,
          [&](int m, int j, int i, const Point<Index>& at, bool inside) {
            Spec::Element(t, at, sums.d[m][4 * j + i], scales(j, i), inside,
                          of_lane(j, i, at));
          });
    }
  }
  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         const WarpTile<Spec>&, float*) {}
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_TAILS_CUH_
