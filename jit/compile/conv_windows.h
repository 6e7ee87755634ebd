#ifndef KILN_JIT_COMPILE_CONV_WINDOWS_H_
#define KILN_JIT_COMPILE_CONV_WINDOWS_H_

#include <cstdint>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// The windows of a pooling of a convolution's elements, rows and columns, as
// the tiles of its kernel have them.
struct ConvWindows {
  Pair size = {1, 1};
  Pair stride = {1, 1};
  // Where windows overlap or reach past the edges of the elements, tiles are
  // laid out by windows, over so many rows and columns, a multiple of `stride`,
  // that begin so many before the elements do. Neighbouring tiles then both
  // compute what their windows share. Else `extent` is 0, and tiles share all
  // elements.
  Pair before = {0, 0};
  Pair extent = {0, 0};

  // Searches for tiles ask this often: not by comparing arrays.
  bool any() const { return size[0] != 1 || size[1] != 1; }
  bool lay_out_tiles() const { return extent[0] != 0 || extent[1] != 0; }
  int64_t overlap(size_t axis) const { return size[axis] - stride[axis]; }
  // Windows for each element.
  double density() const {
    return 1.0 / static_cast<double>(stride[0] * stride[1]);
  }
  // Lets `extent` reach all elements of an image of these dims, also those that
  // are in no window.
  void CoverAll(const Dims4& dims);
  // The most of `length` that whole windows cover, without gaps; 0 if there is
  // room for none.
  int64_t Whole(size_t axis, int64_t length) const;
  friend bool operator==(const ConvWindows&, const ConvWindows&) = default;
};

// Those of `pooling`, a node of kind kPool2d; tiles cover them and no more.
ConvWindows WindowsOf(const LoweredPlan& plan, const Node& pooling);

// Whether a convolution's kernel can pool by `pooling`: small windows with the
// same divisor, which overlap by half of each at most.
bool CanPoolTiles(const LoweredPlan& plan, const Node& pooling);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_WINDOWS_H_
