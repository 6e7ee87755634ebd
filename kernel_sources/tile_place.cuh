// Where a tile of images begins: tiles go along rows, then down, then through
// images, kAcross and kDown of kTileH x kTileW pixels.
#ifndef KILN_KERNEL_SOURCES_TILE_PLACE_CUH_
#define KILN_KERNEL_SOURCES_TILE_PLACE_CUH_

namespace kiln {

template <typename Index, typename Tile>
struct TilePlace {
  Index n;
  int y, x;  // of the first pixel

  __device__ explicit TilePlace(int tile) {
    x = tile % Tile::kAcross * Tile::kTileW;
    tile /= Tile::kAcross;
    y = tile % Tile::kDown * Tile::kTileH;
    n = tile / Tile::kDown;
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_TILE_PLACE_CUH_
