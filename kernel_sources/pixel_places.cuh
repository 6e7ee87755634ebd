// Where numbers of a tile's pixels lie, [image][row][column] with rows that are
// filled up as laid_lines.cuh has them, where channels are the rows of the
// product. Of pixels outside there is something to read.
#ifndef KILN_KERNEL_SOURCES_PIXEL_PLACES_CUH_
#define KILN_KERNEL_SOURCES_PIXEL_PLACES_CUH_

#include "conv_block_tiles.cuh"
#include "conv_run_places.cuh"
#include "laid_lines.cuh"

namespace kiln {

template <typename Spec>
class PixelPlaces {
 public:
  using Places = RunPlaces<Spec>;

  // `part`: of the tile's pixels, a warp's.
  __device__ PixelPlaces(const ConvBlock<Spec>& block, int tile, int part)
      : first_(block.n * LaidLines<Spec>::kPlane +
               (block.top(tile) + part * Spec::kPartStep) * kPitch +
               block.left()) {}

  // Of the first of eight, of sums 4 * i on, in `numbers`.
  template <typename T>
  __device__ const T* OfEight(const T* numbers, int i) const {
    const int row = i * 8 / Places::kPitch;
    const int column = i * 8 % Places::kPitch;
    return numbers + first_ + (row * kPitch + column);
  }

 private:
  static constexpr int kPitch = static_cast<int>(Spec::kLinePitch);

  const unsigned first_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_PIXEL_PLACES_CUH_
