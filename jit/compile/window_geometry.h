#ifndef KILN_JIT_COMPILE_WINDOW_GEOMETRY_H_
#define KILN_JIT_COMPILE_WINDOW_GEOMETRY_H_

#include <cstdint>

#include "jit/plan/canonical.h"

namespace kiln {

// Fewer elements than this do not fill a device if threads take several.
constexpr int64_t kMinVectorised = 1 << 17;

// What avg_pool2d divides every sum by; 0 if windows at the edges differ.
int64_t PoolDivisor(const PoolAttributes& pool, const Dims& input,
                    const Dims& output);

// Neighbouring outputs of a thread of pool2d.cu where windows are small, 1 or
// 4; 0 where a thread walks through its window.
int PoolVector(const PoolAttributes& pool, const Dims& input,
               const Dims& output);

// Outputs below each other of such a thread that takes single columns, for
// which it needs the fewest instructions, or nearly; else 1.
int PoolTall(const PoolAttributes& pool, const Dims& output);

// What a block of pool_columns.cu has: rows of windows, and windows of each.
struct PoolStrips {
  int rows = 1;
  int outputs = 1;
  int64_t count = 0;  // of strips; 0: not such windows
};
PoolStrips PoolStripsOf(const PoolAttributes& pool, const Dims& output);

// Neighbours in a row of a patch that a thread of unfold.cu moves: 8 of 16 bits
// and 4 of others, or the largest part of these that divides the rows of patch
// and input.
int UnfoldVector(const Pair& patch, const TensorDesc& input);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_WINDOW_GEOMETRY_H_
