#ifndef KILN_JIT_COMPILE_LINEAR_COST_H_
#define KILN_JIT_COMPILE_LINEAR_COST_H_

#include <cstdint>

#include "jit/compile/direct_tile.h"

namespace kiln {

// Numbers of k that a stage has of each row.
inline constexpr int64_t kLinearChunk = 64;
// Channels of a warpgroup.
inline constexpr int64_t kLinearChannels = 64;

// A linear layer as linear.cu sees it.
struct LinearWork {
  int64_t images;
  int64_t inputs;
  int64_t results;
  int halves = 0;      // LinearTile
  bool feeds = false;  // layers that want its results in parts

  int64_t chunks() const;
  // Bytes of a number as the kernel reads it, and as it stores one.
  int64_t bytes() const;
  int64_t result_bytes() const;
};

// Of what a tile brings at once for each chunk: where it keeps its weights,
// inputs alone.
int64_t BytesOfLinearStage(const LinearTile& tile);
// Of weights that are kept.
int64_t BytesOfKeptWeights(const LinearWork& work, const LinearTile& tile);

// Blocks that would have a tile each.
int64_t LinearBlocks(const LinearWork& work, const LinearTile& tile);

// Cycles of a multiprocessor until the last block has ended, of which there are
// `at_once` at once; with those of a kernel that splits the results, where
// others want them so and this one cannot.
double LinearCycles(const LinearWork& work, const LinearTile& tile,
                    int64_t at_once, int64_t sm_count);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_LINEAR_COST_H_
