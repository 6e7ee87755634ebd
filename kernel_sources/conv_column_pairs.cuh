// How producers of conv_wgmma.cu bring few channels for a filter of an odd
// width and a stride of two columns (Spec::kPairsColumns): by pairs of columns
// that lie in one access. An octet has both columns of a pair in the plane of
// the first, for the taps of the filter from the second on, two by two. The
// first tap is alone: octets of the other plane have the second column and
// zeros. So no octet has a column that its tap has not, whose weight would be
// 0, which makes a NaN of an infinity.
#ifndef KILN_KERNEL_SOURCES_CONV_COLUMN_PAIRS_CUH_
#define KILN_KERNEL_SOURCES_CONV_COLUMN_PAIRS_CUH_

#include "conv_stages.cuh"

namespace kiln {

// One of the pairs of a patch. Patches begin at the second column of one.
template <typename Spec>
class ColumnPair {
  using Group = GroupTile<Spec>;
  static constexpr int kOfRow = Spec::kRowPitch + 1;

 public:
  static constexpr int kCount = Spec::kPlanesH * Spec::kPlaneHeight * kOfRow;
  static_assert(!Spec::kPairsColumns ||
                    (Spec::kPlanesW == 2 && Spec::kOctetColumns == 2 &&
                     Group::kOctets == 1 && Spec::kImages == 1 &&
                     Spec::kCarriedRows == 0 && !Spec::kWrapsRows),
                "A pair has all numbers of an octet of one image.");

  __device__ explicit ColumnPair(int i)
      : plane_(i / kOfRow / Spec::kPlaneHeight),
        row_(i / kOfRow % Spec::kPlaneHeight),
        pair_(i % kOfRow - 1) {}

  // Its coordinates in the input, where the patch begins at `top` and `left`.
  __device__ int Row(int top) const {
    return top + row_ * Spec::kStrideH * Spec::kInterleave + plane_;
  }
  __device__ int Column(int left) const { return left + 2 * pair_ + 1; }

  // Positions of its octets, and whether the patch has them.
  __device__ bool has_both() const { return pair_ >= 0; }
  __device__ int both() const { return First(1) + pair_; }
  __device__ bool has_second() const { return pair_ + 1 < Spec::kRowPitch; }
  __device__ int second() const { return First(0) + pair_ + 1; }

 private:
  __device__ int First(int plane_w) const {
    return ((plane_ * 2 + plane_w) * Spec::kPlaneHeight + row_) *
           Spec::kRowPitch;
  }

  const int plane_, row_, pair_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_COLUMN_PAIRS_CUH_
