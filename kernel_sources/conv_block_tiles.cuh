// The tiles of a block as those who bring them count: one below the other, and
// where blocks have a team (conv_held.cuh), those of one image after another.
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

  // With its first image.
  __device__ const ConvBlock<Spec>& block() const { return block_; }

  // Of all tiles.
  __device__ int CountChunks() const {
    const int images = Spec::kTeams > 0 ? block_.rounds() : 1;
    return images * tiles_ * ConvTile<Spec>::kChunks;
  }

  // With the image of the tile that has chunk `chunk` of all.
  __device__ ConvBlock<Spec> BlockOf(int chunk) const {
    return Spec::kTeams > 0
               ? block_.InRound(chunk / ConvTile<Spec>::kChunks / tiles_)
               : block_;
  }
  // Which of the strip that tile is.
  __device__ int TileOf(int chunk) const {
    const int number = chunk / ConvTile<Spec>::kChunks;
    return Spec::kTeams > 0 ? number % tiles_ : number;
  }

 private:
  const ConvBlock<Spec> block_;
  const int tiles_;  // of a strip
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_BLOCK_TILES_CUH_
