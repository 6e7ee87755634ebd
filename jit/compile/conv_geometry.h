#ifndef KILN_JIT_COMPILE_CONV_GEOMETRY_H_
#define KILN_JIT_COMPILE_CONV_GEOMETRY_H_

#include <cstdint>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// A convolution, ordinary or transposed, as conv_tile.cuh sees it: a
// transposed one is the convolution of an input with zeros inserted by the
// mirrored filter.
struct ConvProblem {
  Dims4 input = {1, 1, 1, 1};
  Dims4 output = {1, 1, 1, 1};
  int64_t groups = 1;
  Pair kernel = {1, 1};
  Pair stride = {1, 1};
  Pair padding = {0, 0};  // may be negative
  Pair dilation = {1, 1};
  Pair insert = {1, 1};  // distance of the input's pixels
  bool transposed = false;
  DataType input_type = DataType::kF32;
  DataType weight_type = DataType::kF32;

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t group_inputs() const { return input[1] / groups; }
  int64_t group_outputs() const { return output[1] / groups; }
  friend bool operator==(const ConvProblem&, const ConvProblem&) = default;
};

ConvProblem ConvProblemOf(const LoweredPlan& plan, const Node& conv);

// How blocks and warps share a convolution; names and meaning are those of
// conv_tile.cuh.
struct ConvGeometry {
  ConvProblem problem;
  // Warpgroups that multiply on Hopper (conv_wgmma.cu); 0: warps do
  // (conv_mma.cu).
  int warpgroups = 0;
  int tile_h = 8;
  int tile_w = 32;
  int warps_m = 8;
  int warps_n = 1;
  int tiles_m = 2;
  int tiles_n = 8;
  int chunk = 8;
  int tiles_per_block = 1;
  bool splits_input = false;
  bool splits_weight = false;
  bool copies_four = false;  // columns of the input at once
  int resident_blocks = 2;   // of a multiprocessor
  int split_stages = 1;      // 2: the next patch is split during a product

  // Columns that a patch begins early so that four can be copied at once.
  int64_t lead() const;
  int64_t halo(size_t axis) const;  // pixels of the patch beyond the tile's
  int64_t patch_width() const;
  int64_t patch() const;  // pixels
  // Rows of A: the pixels of a tile, and of warpgroups those of the halo
  // between them.
  int64_t rows() const;
  int64_t positions() const;  // pixels of the patch that products read
  int threads() const { return warps_m * warps_n * 32; }
  int64_t block_channels() const { return warps_n * tiles_n * 8; }
  int64_t channel_blocks() const;  // of one group
  int64_t chunks() const;
  int64_t steps() const;  // of 8 through the depth of one chunk
  int64_t tiles_across() const;
  int64_t strips() const;
  int64_t blocks() const;        // of the grid
  int64_t patch_words() const;   // of one chunk
  int64_t split_words() const;   // of each part of the patch that is multiplied
  int64_t weight_words() const;  // of one chunk for one block of channels
  int64_t packed_bytes() const;  // of all weights
  int64_t shared_words() const;  // without what the tail needs
  // Blocks that leave partial statistics of the same group, for groups of
  // `group_channels`.
  int64_t Splits(int64_t group_channels) const;
  friend bool operator==(const ConvGeometry&, const ConvGeometry&) = default;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_GEOMETRY_H_
