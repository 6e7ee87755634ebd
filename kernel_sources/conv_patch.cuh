// The patch of the input that conv_mma.cu multiplies, and its way into shared
// memory. A chunk, halo included, lies there as [channel][row][column], and k
// only selects an offset into it, so nothing is copied per tap.
//
// A transposed convolution is the convolution of an input with zeros inserted
// between its pixels (kInsertH, kInsertW: distance of the true pixels) by the
// mirrored filter.
#ifndef KILN_KERNEL_SOURCES_CONV_PATCH_CUH_
#define KILN_KERNEL_SOURCES_CONV_PATCH_CUH_

#include "async_copy.cuh"
#include "conv_tile.cuh"
#include "patch_share.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec>
struct ConvPatch {
  static constexpr int kThreads = ConvTile<Spec>::kThreads;
  static constexpr int kTaps = Spec::kKernelH * Spec::kKernelW;

  // Steps of 8 through the k of one chunk.
  static constexpr int kDepth = Spec::kChunk * kTaps;
  static constexpr int kSteps = (kDepth + 7) / 8;
  static constexpr bool kHasPaddedDepth = kDepth % 8 != 0;

  // Words of weights: two for a lane's part of an 8 x 8 matrix, twice that
  // where each is split in two.
  static constexpr int kFragmentWords = Spec::kSplitsWeight ? 4 : 2;
  static constexpr int kWeightWords =
      kSteps * (Spec::kBlockChannels / 8) * 32 * kFragmentWords;

  // The patch of one input channel. Where four columns are copied at once, it
  // begins kLead columns early, at a multiple of four.
  static constexpr int kLead =
      Spec::kCopiesFour ? (4 - Spec::kPaddingW % 4) % 4 : 0;
  static constexpr int kPatchH = (Spec::kTileH - 1) * Spec::kStrideH +
                                 (Spec::kKernelH - 1) * Spec::kDilationH + 1;
  static constexpr int kNeededW = kLead + (Spec::kTileW - 1) * Spec::kStrideW +
                                  (Spec::kKernelW - 1) * Spec::kDilationW + 1;
  static constexpr int kPatchW =
      Spec::kCopiesFour ? (kNeededW + 3) / 4 * 4 : kNeededW;
  static constexpr int kPatch = kPatchH * kPatchW;
  // 8 modulo 32: the four channels that a warp reads at once lie in different
  // banks.
  static constexpr int kPitch = (kPatch + 23) / 32 * 32 + 8;
  static constexpr int kPatchWords = Spec::kChunk * kPitch;
};

// Channel and tap of position k of a chunk. Channels are innermost where there
// are enough for the four lanes that read at once to read four channels.
template <typename Spec>
__device__ void SplitDepth(int k, int* channel, int* tap) {
  using Tile = ConvPatch<Spec>;
  if constexpr (Spec::kChunk % 4 == 0) {
    *channel = k % Spec::kChunk;
    *tap = k / Spec::kChunk;
  } else {
    *channel = k / Tile::kTaps;
    *tap = k % Tile::kTaps;
  }
}

// Offset in the patch of position k for the pixel at its origin; negative
// where k is padding.
template <typename Spec>
__device__ int DepthOffset(int k) {
  using Tile = ConvPatch<Spec>;
  if (k >= Tile::kDepth) return -1;
  int channel, tap;
  SplitDepth<Spec>(k, &channel, &tap);
  const int y = tap / Spec::kKernelW * Spec::kDilationH;
  const int x = tap % Spec::kKernelW * Spec::kDilationW;
  return channel * Tile::kPitch + y * Tile::kPatchW + x;
}

// Four neighbours, or one, from memory to shared memory; zeros unless `read`.
// `is_aligned`: whether the input begins where four can be copied together.
template <typename Spec, typename T, typename Index>
__device__ void CopyElements(const T* input, Index from, bool read,
                             bool is_aligned, float* to) {
  if constexpr (Spec::kCopiesFour) {
    // The loop is rare, and code costs time to compile.
    if (is_aligned) return ptx::CopyAsync<16>(to, input + from, read);
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      ptx::CopyAsync<4>(to + i, input + from + i, read);
    }
  } else if constexpr (Spec::kCopiesInput) {
    ptx::CopyAsync<4>(to, input + from, read);
  } else {
    *to = read ? Load(input, from) : 0.0f;
  }
}

// Brings the patch of one chunk to shared memory; zeros outside the input.
// Asynchronous where elements are copied as they are.
template <typename Spec>
__device__ void LoadPatch(const typename Spec::Tensors& t,
                          const ConvBlock<Spec>& block, int tile, int chunk,
                          float* patch) {
  using Tile = ConvPatch<Spec>;
  using Input = typename Spec::Input;
  using Index = typename Spec::Index;
  using Share = PatchShare<Tile::kPatch, Tile::kThreads,
                           Spec::kCopiesFour ? 4 : 1, Spec::kChunk>;
  constexpr int kInputs = ConvTile<Spec>::kInputs;
  const int thread = threadIdx.x;
  constexpr Index kPlane = static_cast<Index>(Input::kH) * Input::kW;
  const int top = block.top(tile) * Spec::kStrideH - Spec::kPaddingH;
  const int left =
      block.left() * Spec::kStrideW - Spec::kPaddingW - Tile::kLead;
  const int channels = kInputs - chunk * Spec::kChunk;
  const bool is_aligned = AreAligned(t.input);
  const Index plane = static_cast<Index>(block.n) * Input::kC +
                      block.group * kInputs + chunk * Spec::kChunk;

#pragma unroll 1
  for (int i = Share::First(thread); i < Tile::kPatch; i += Share::kStep) {
    const int y = top + i / Tile::kPatchW;
    const int x = left + i % Tile::kPatchW;
    const int h = y / Spec::kInsertH;
    const int w = x / Spec::kInsertW;
    const bool inside = y >= 0 && h < Input::kH && x >= 0 && w < Input::kW &&
                        h * Spec::kInsertH == y && w * Spec::kInsertW == x;
    const Index from = plane * kPlane + (inside ? h * Input::kW + w : 0);
#pragma unroll
    for (int k = 0; k < Share::kEach; ++k) {
      const int channel = Share::Slice(thread, k);
      if (!Share::HasSlice(channel)) continue;
      const bool read = inside && channel < channels;
      CopyElements<Spec>(t.input, read ? from + channel * kPlane : 0, read,
                         is_aligned, patch + channel * Tile::kPitch + i);
    }
  }
}

// Begins to bring the weights of one chunk to shared memory.
template <typename Spec>
__device__ void LoadWeights(const typename Spec::Tensors& t,
                            const ConvBlock<Spec>& block, int chunk,
                            unsigned* weights) {
  using Tile = ConvPatch<Spec>;
  const unsigned* const from =
      t.packed +
      static_cast<long long>(block.weights(chunk)) * Tile::kWeightWords;
#pragma unroll 2
  for (int i = threadIdx.x; i < Tile::kWeightWords / 4; i += Tile::kThreads) {
    ptx::CopyAsync<16>(weights + i * 4, from + i * 4, true);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PATCH_CUH_
