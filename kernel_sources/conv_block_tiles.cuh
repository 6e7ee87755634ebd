// The tiles of a block in the order in which it computes them: one below the
// other, and where it goes through several rounds (Spec::kImageStep), of an
// image each or of a column of tiles (Spec::kWalksColumns), those of one round
// after another.
#ifndef KILN_KERNEL_SOURCES_CONV_BLOCK_TILES_CUH_
#define KILN_KERNEL_SOURCES_CONV_BLOCK_TILES_CUH_

#include "conv_tile.cuh"

namespace kiln {

template <typename Spec>
class BlockTiles {
 public:
  __device__ explicit BlockTiles(unsigned number)
      : block_(number),
        tiles_(Spec::kTilesPerBlock == 1 ? 1 : block_.tiles()) {}

  // In its first round.
  __device__ const ConvBlock<Spec>& block() const { return block_; }

  __device__ int Count() const {
    const int images = Spec::kImageStep > 0 ? block_.rounds() : 1;
    return images * tiles_;
  }

  // The block in the round of the `number`-th tile, and which of that round's
  // it is.
  __device__ ConvBlock<Spec> BlockOf(int number) const {
    return Spec::kImageStep > 0 ? block_.InRound(number / tiles_) : block_;
  }
  __device__ int TileOf(int number) const {
    return Spec::kImageStep > 0 ? number % tiles_ : number;
  }

 private:
  const ConvBlock<Spec> block_;
  const int tiles_;  // of a strip
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_BLOCK_TILES_CUH_
