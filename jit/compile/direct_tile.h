#ifndef KILN_JIT_COMPILE_DIRECT_TILE_H_
#define KILN_JIT_COMPILE_DIRECT_TILE_H_

#include <cstdint>
#include <variant>

namespace kiln {

// Of narrow_conv2d.cu: a convolution of one tap with few results.
struct OneTapTile {
  int channels = 8;  // that a thread loads at once
  int slices = 1;    // parts of a block that share the channels of its pixels
  friend bool operator==(const OneTapTile&, const OneTapTile&) = default;
};

// Of narrow_windows.cu: one of several taps with few results.
struct WindowTile {
  int rows = 1;    // of results, of a thread
  int slices = 1;  // parts of a block that share the channels of its pixels
  friend bool operator==(const WindowTile&, const WindowTile&) = default;
};

// Of dense.cu: one of few images that are as large as the filter. Lanes that
// share sums, and of how many images and results these are.
struct DenseTile {
  int lanes = 32;
  int images = 1;
  int results = 1;
  friend bool operator==(const DenseTile&, const DenseTile&) = default;
};

// Of stem_conv2d.cu: one of few channels. Warps of a block are side by side
// along channels, rows and columns of the result, and each has tiles_m times
// 16 channels of tiles_n times 8 columns of a row, for `rows` rows.
struct StemTile {
  int warps_c = 1;
  int warps_h = 1;
  int warps_w = 1;
  int tiles_m = 1;
  int tiles_n = 8;
  int rows = 1;
  int rows_of_quad = 1;     // of the filter
  int columns_at_once = 1;  // of the input, by an access
  int run = 1;              // quads of a row whose columns are a stride apart
  bool splits = false;      // operands, in two TF32 numbers each
  friend bool operator==(const StemTile&, const StemTile&) = default;
};

// Of head_conv2d.cu: one of 16-bit numbers and several taps with few results.
// Each warp of a block has a row of its tile.
struct HeadTile {
  int width = 64;  // of the tile, in pixels
  friend bool operator==(const HeadTile&, const HeadTile&) = default;
};

// Of linear.cu: one that is as large as the filter. A warpgroup has 64 channels
// of all images of a tile.
struct LinearTile {
  int warpgroups = 2;
  int images = 128;
  int stages = 3;        // of chunks, in shared memory
  int parts = 1;         // blocks of a cluster that share a tile's sums
  int copied = 8;        // numbers, at once
  int halves = 0;        // of each number, that split_rows.cu leaves; 0: 16-bit
                         // numbers as they lie
  bool streams = false;  // weights, which are read once
  // As linear_kept.cu has it: blocks keep all weights, and have many tiles.
  bool keeps_weights = false;
  bool is_bfloat16 = false;
  friend bool operator==(const LinearTile&, const LinearTile&) = default;
};

// How a kernel that reads a convolution's operands as they lie, and packs no
// weights, divides it.
struct DirectTile {
  int threads = 256;         // of a block
  int vector = 1;            // neighbours that a thread has at once
  int64_t blocks = 1;        // of the launch
  int min_blocks = 4;        // on a multiprocessor at once
  int64_t shared_bytes = 0;  // of a block
  std::variant<OneTapTile, WindowTile, DenseTile, StemTile, HeadTile,
               LinearTile>
      part;

  // The part, if it is of this kernel.
  template <typename Part>
  const Part* As() const {
    return std::get_if<Part>(&part);
  }
  friend bool operator==(const DirectTile&, const DirectTile&) = default;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_DIRECT_TILE_H_
