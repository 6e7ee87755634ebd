#ifndef KILN_JIT_COMPILE_NARROW_TILE_H_
#define KILN_JIT_COMPILE_NARROW_TILE_H_

#include <cstdint>

namespace kiln {

// How narrow_conv2d.cu divides a convolution of one tap with few results,
// narrow_windows.cu one of several, or dense.cu one of few images that are as
// large as the filter.
struct NarrowTile {
  int threads = 256;   // of a block
  int vector = 1;      // neighbouring pixels of a thread
  int channels = 8;    // that a thread loads at once
  int slices = 1;      // parts of a block that share the channels of its pixels
  int64_t blocks = 1;  // that have all pixels
  int min_blocks = 4;  // on a multiprocessor at once
  int64_t shared_bytes = 0;  // of a block
  int rows = 0;              // of windows' results, of a thread; 0: of one tap
  // Of dense.cu: lanes that share sums, and of how many images and results
  // these are; 0: of others.
  int lanes = 0;
  int images = 0;
  int results = 0;

  bool has_windows() const { return rows > 0; }
  bool is_dense() const { return lanes > 0; }
  friend bool operator==(const NarrowTile&, const NarrowTile&) = default;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_NARROW_TILE_H_
