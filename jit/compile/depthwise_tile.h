#ifndef KILN_JIT_COMPILE_DEPTHWISE_TILE_H_
#define KILN_JIT_COMPILE_DEPTHWISE_TILE_H_

#include <cstdint>
#include <optional>

#include "jit/plan/canonical.h"

namespace kiln {

// What a thread of depthwise_conv2d.cu computes of one channel: a tile, or by a
// walk down `rows` of outputs (depthwise_walk.cuh).
struct DepthwiseTile {
  int rows = 1;              // of outputs
  int columns = 1;           // of these, whole vectors
  int vector = 1;            // neighbours of an access
  bool holds_filter = true;  // in registers, all of it
  int row_taps = 0;          // of a part of a filter's row; 0: of all of it
  bool walks = false;        // from row to row, instead of all rows at once
  int rows_ahead = 0;        // that a walk has loaded before their turn
  int threads = 256;         // of a block
  int min_blocks = 0;  // on a multiprocessor at once; 0: the compiler's choice

  friend bool operator==(const DepthwiseTile&, const DepthwiseTile&) = default;
};

// A depthwise convolution. `weight`, `input` and `output` are extents of
// tensors with four axes; `bytes` are what the kernel reads and writes.
struct DepthwiseWork {
  ConvAttributes conv;
  Dims input;
  Dims weight;
  Dims output;
  int64_t bytes = 0;
  int64_t element_bytes = 4;     // of the input
  int64_t operands = 0;          // inputs of the plan that what follows reads
  bool has_async_copies = true;  // sm_80 and up
};

// The tile or walk that `sm_count` multiprocessors of an H100 would take the
// fewest cycles with; nothing if the convolution is not depthwise, or dilation
// or strides are too long to unroll.
std::optional<DepthwiseTile> ChooseDepthwiseTile(const DepthwiseWork& work,
                                                 int sm_count);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_DEPTHWISE_TILE_H_
