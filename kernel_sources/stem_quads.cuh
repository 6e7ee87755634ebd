// What stem_conv2d.cu multiplies: quads of four numbers, which are all
// channels of a place in the image, in one row or in several that the filter
// has below each other. Behind its last number a quad has zeros.
#ifndef KILN_KERNEL_SOURCES_STEM_QUADS_CUH_
#define KILN_KERNEL_SOURCES_STEM_QUADS_CUH_

#include "mma.cuh"
#include "reducers.cuh"
#include "storage_types.cuh"

namespace kiln {

// How a block's tile of the output, and what it reads for it, are divided.
template <typename Spec>
struct StemTile {
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  static constexpr bool kHasWords = sizeof(typename Spec::InputType) == 4;
  static constexpr int kRows = Spec::kRowsOfQuad;
  static constexpr int kElements = Input::kC * kRows;
  static_assert(kElements <= 4, "A quad has four numbers.");
  static_assert(Spec::kKernelH % kRows == 0, "All of the filter's rows.");

  // A product takes so many columns of the filter, and all of them in so many
  // steps; behind the last one may follow some that the filter has not.
  static constexpr int kColumns = kHasWords ? 2 : 4;
  static constexpr int kColumnSteps =
      (Spec::kKernelW + kColumns - 1) / kColumns;
  static constexpr int kRowSteps = Spec::kKernelH / kRows;
  static constexpr int kSteps = kRowSteps * kColumnSteps;
  static constexpr int kLastColumns =
      Spec::kKernelW - (kColumnSteps - 1) * kColumns;

  // A warp has 8 * kTilesN pixels of a row, and 16 * kTilesM channels, for
  // kRowsOfWarp rows one after the other.
  static constexpr int kWarpW = 8 * Spec::kTilesN;
  static constexpr int kTileH = Spec::kRowsOfWarp * Spec::kWarpsH;
  static constexpr int kTileW = kWarpW * Spec::kWarpsW;
  static constexpr int kAcross = (Output::kW + kTileW - 1) / kTileW;
  static constexpr int kDown = (Output::kH + kTileH - 1) / kTileH;
  static constexpr int kTiles = kAcross * kDown * Output::kN;
  static constexpr int kChannelTiles = Spec::kWarpsC * Spec::kTilesM;
  static_assert(Spec::kThreads ==
                    32 * Spec::kWarpsC * Spec::kWarpsH * Spec::kWarpsW,
                "Each warp has a part of the tile.");

  // Quads of the patch, whose rows are whole accesses of kAtOnce columns and
  // begin kShift columns before the first one that is needed.
  static constexpr int kAtOnce = Spec::kColumnsAtOnce;
  static_assert(Input::kW % kAtOnce == 0, "Accesses end with rows.");
  static constexpr int kShift = (kAtOnce - Spec::kPaddingW % kAtOnce) % kAtOnce;
  static constexpr int kPatchH = (kTileH - 1) * Spec::kStrideH +
                                 (kRowSteps - 1) * kRows * Spec::kDilationH + 1;
  static constexpr int kPatchW =
      (kShift + (kTileW - 1) * Spec::kStrideW +
       (kColumnSteps * kColumns - 1) * Spec::kDilationW + kAtOnce) /
      kAtOnce * kAtOnce;

  // Where they lie in shared memory: in a row, columns that are a stride apart
  // next to each other, and so far from those of the next run that lanes which
  // read at once do not meet in a bank.
  static constexpr int kRun = Spec::kRunOfQuads;
  static constexpr int kPitch = kRun * Spec::kStrideW;
  static_assert(kPitch >= kPatchW, "Runs have all columns.");
  static __device__ constexpr int PlaceOf(int column) {
    return column % Spec::kStrideW * kRun + column / Spec::kStrideW;
  }
};

// Quads as tensor cores take them. Of f32 an element is the number of TF32
// nearest to it; where operands are split, another quad has what is left of it.
template <typename Spec, typename Type = typename Spec::InputType>
struct StemQuads {
  using Quad = uint2;
  static constexpr int kParts = 1;

  static __device__ unsigned Pair(Type first, Type second) {
    return static_cast<unsigned>(second.bits) << 16 | first.bits;
  }
  static __device__ bool Set(const Type (&x)[4], Quad (&parts)[kParts]) {
    parts[0] = make_uint2(Pair(x[0], x[1]), Pair(x[2], x[3]));
    return true;
  }
};

template <typename Spec>
struct StemQuads<Spec, float> {
  using Quad = uint4;
  static constexpr int kParts = Spec::kSplits ? 2 : 1;

  // Returns whether the number is finite.
  static __device__ bool SetOne(float x, unsigned* large, unsigned* small) {
    const bool is_finite = fabsf(x) < Infinity();
    *large = is_finite ? NearestFiniteTf32(x) : TruncatedTf32(x);
    *small = is_finite ? NearestTf32(x - __uint_as_float(*large)) : 0;
    return is_finite;
  }
  static __device__ bool Set(const float (&x)[4], Quad (&parts)[kParts]) {
    unsigned large[4], small[4];
    bool are_finite = true;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      are_finite = SetOne(x[i], &large[i], &small[i]) && are_finite;
    }
    parts[0] = make_uint4(large[0], large[1], large[2], large[3]);
    if constexpr (kParts == 2) {
      parts[1] = make_uint4(small[0], small[1], small[2], small[3]);
    }
    return are_finite;
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_STEM_QUADS_CUH_
