// The positions of a patch of conv_wgmma.cu, in the order in which they lie in
// shared memory: image by image; of an image, a plane for each residue of the
// coordinates modulo the stride; of a plane, row by row.
#ifndef KILN_KERNEL_SOURCES_CONV_POSITIONS_CUH_
#define KILN_KERNEL_SOURCES_CONV_POSITIONS_CUH_

#include "conv_stages.cuh"

namespace kiln {

template <typename Spec>
struct PatchPositions {
  using Group = GroupTile<Spec>;
  using Index = typename Spec::Index;

  // A position's image, among the block's.
  static __device__ int ImageOf(int position) {
    return Spec::kImages == 1 ? 0 : position / Spec::kImagePositions;
  }
  // Whether it has a pixel of that image.
  static __device__ bool IsOfImage(int position) {
    return Spec::kImages == 1 || PlaceOf(position) < Group::kImagePatch;
  }
  // From the first element of a channel in the first image to the same in its
  // own.
  static __device__ Index FirstOfImage(int position) {
    return ImageOf(position) * Spec::Input::kC *
           static_cast<Index>(Spec::Input::kH) * Spec::Input::kW;
  }

  // Where the patch of a tile begins in the input, for a part of the filter's
  // rows. Of a phase of a transposed convolution the padding is one less from
  // some phase on.
  static __device__ int TopOf(const ConvBlock<Spec>& block, int tile,
                              int row_part) {
    const int above = Spec::kPaddingH -
                      ConvTile<Spec>::RowOfPart(row_part) * Spec::kDilationH;
    if constexpr (Spec::kInterleave > 1) return block.y(tile, 0) - above;
    return block.top(tile) * Spec::kStrideH - above +
           (block.phase_h + Spec::kPhaseStartH) / Spec::kPhasesH;
  }
  static __device__ int LeftOf(const ConvBlock<Spec>& block) {
    return block.left() * Spec::kStrideW - Spec::kPaddingW +
           (block.phase_w + Spec::kPhaseStartW) / Spec::kPhasesW;
  }

  // A position's coordinates in the input, where its patch begins at `top` and
  // `left`, and whether these are inside.
  static __device__ int RowOf(int top, int position) {
    constexpr int kStep = Spec::kStrideH * Spec::kInterleave;
    return top + InPlane(position) / Spec::kRowPitch * kStep +
           PlaneOf(position) / Spec::kPlanesW;
  }
  static __device__ int ColumnOf(int left, int position) {
    return left + InPlane(position) % Spec::kRowPitch * Spec::kStrideW +
           PlaneOf(position) % Spec::kPlanesW;
  }
  static __device__ bool IsRow(int row) {
    return static_cast<unsigned>(row) < static_cast<unsigned>(Spec::Input::kH);
  }
  // Of columns as AlongRow counts them.
  static __device__ bool IsColumn(int column) {
    return static_cast<unsigned>(column) < static_cast<unsigned>(kLength);
  }
  // Where rows are parts of one, what lies beyond the end of one is in the
  // next, and columns count from the first row.
  static __device__ int AlongRow(int row, int column) {
    return Spec::kWrapsRows ? row * kWidth + column : column;
  }

 private:
  static constexpr int kWidth = static_cast<int>(Spec::Input::kW);
  static constexpr int kLength =
      kWidth * (Spec::kWrapsRows ? static_cast<int>(Spec::Input::kH) : 1);
  static constexpr bool kHasPlanes = Spec::kPlanesH * Spec::kPlanesW > 1;

  // In the patch of its image.
  static __device__ int PlaceOf(int position) {
    return Spec::kImages == 1 ? position : position % Spec::kImagePositions;
  }
  static __device__ int PlaneOf(int position) {
    return kHasPlanes ? PlaceOf(position) / Group::kPlane : 0;
  }
  static __device__ int InPlane(int position) {
    return kHasPlanes ? PlaceOf(position) % Group::kPlane : PlaceOf(position);
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_POSITIONS_CUH_
