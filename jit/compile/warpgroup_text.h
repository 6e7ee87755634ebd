#ifndef KILN_JIT_COMPILE_WARPGROUP_TEXT_H_
#define KILN_JIT_COMPILE_WARPGROUP_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "jit/compile/conv_geometry.h"

namespace kiln {

// A member of the Spec of conv_wgmma.cu: the warpgroup products of a part of a
// chunk's pixels with a part of its weights, or of sixteen of their channels
// (ConvGeometry::product_calls), as PTX. Its operands name every register of
// the sums, so no template can write them.
//   AddProducts(sums, pixels, weights, empty, keep)
// adds to `sums`, or unless `keep` replaces them; behind these there may be
// which taps a phase lacks (AbsentTaps), and which of the only call's chains is
// meant (ConvGeometry::chains), to be known when the unit is compiled. `pixels`
// and `weights` are matrices without the place of their second half
// (wgmma.cuh); `empty` is what to add to `pixels` for the last step where its
// second half is zeros.
std::vector<std::string> WarpgroupProducts(const ConvGeometry& geometry);

// Of the Spec of linear.cu, likewise: those of a chunk, whose operands lie in
// rows of 128 bytes, swizzled by as many.
//   AddProducts(sums, weights, inputs, keep)
struct ChunkOfProducts {
  int64_t columns;  // inputs; a multiple of 8 up to 256
  int64_t depth;    // a multiple of 16 up to 64
  bool is_bfloat16;
  // Parts of a number: of two, the second ones lie as many rows of eight units
  // behind the first as there are weights or inputs, and the product of both is
  // left out.
  int halves = 1;
  int64_t weights = 0;
};
std::vector<std::string> ChunkProducts(const ChunkOfProducts& chunk);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_WARPGROUP_TEXT_H_
