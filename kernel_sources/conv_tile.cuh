// The geometry of one convolution tile and its way into shared memory: what
// conv_mma.cu and pack_weights.cu share.
//
// A convolution is a matrix product of pixels x k by k x channels, where k
// counts the pairs of input channel and filter tap. A block computes a tile of
// kTileH x kTileW pixels for kBlockChannels output channels of one image and
// one group. It goes through the input channels in chunks; a chunk of the
// input patch, halo included, lies in shared memory as [channel][row][column],
// and k only selects an offset into it, so nothing is copied per tap.
//
// A transposed convolution is the convolution of an input with zeros inserted
// between its pixels (kInsertH, kInsertW: distance of the true pixels) by the
// mirrored filter.
#ifndef KILN_KERNEL_SOURCES_CONV_TILE_CUH_
#define KILN_KERNEL_SOURCES_CONV_TILE_CUH_

#include "mma.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec>
struct ConvTile {
  static constexpr int kThreads = Spec::kWarpsM * Spec::kWarpsN * 32;
  static constexpr int kTaps = Spec::kKernelH * Spec::kKernelW;

  // Channels of one group.
  static constexpr int kInputs = Spec::Input::kC / Spec::kGroups;
  static constexpr int kOutputs = Spec::Output::kC / Spec::kGroups;
  static constexpr int kBlockChannels = Spec::kWarpsN * Spec::kTilesN * 8;
  static constexpr int kChannelBlocks =
      (kOutputs + kBlockChannels - 1) / kBlockChannels;
  static constexpr int kChunks = (kInputs + Spec::kChunk - 1) / Spec::kChunk;

  // Steps of 8 through the k of one chunk.
  static constexpr int kDepth = Spec::kChunk * kTaps;
  static constexpr int kSteps = (kDepth + 7) / 8;
  static constexpr bool kHasPaddedDepth = kDepth % 8 != 0;

  // Words of weights: two for a lane's part of an 8 x 8 matrix, twice that
  // where each is split in two.
  static constexpr int kFragmentWords = Spec::kSplitsWeight ? 4 : 2;
  static constexpr int kWeightWords =
      kSteps * (kBlockChannels / 8) * 32 * kFragmentWords;

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

  static constexpr int kTilesAcross =
      (Spec::Output::kW + Spec::kTileW - 1) / Spec::kTileW;
  static constexpr int kTilesDown =
      (Spec::Output::kH + Spec::kTileH - 1) / Spec::kTileH;
  static constexpr int kStrips =
      (kTilesDown + Spec::kTilesPerBlock - 1) / Spec::kTilesPerBlock;

  // Rows of A. Of warpgroups they are a run of the patch, halo included, so
  // that a tap moves all of them alike.
  static constexpr int kRows = Spec::kWarpsM * Spec::kTilesM * 16;
  static constexpr int kRowPitch =
      Spec::kWarpgroups > 0 ? kPatchW : Spec::kTileW;
  static_assert(Spec::kTileH * kRowPitch <= kRows,
                "The warps share the pixels of the tile.");
};

// Channel and tap of position k of a chunk. Channels are innermost where there
// are enough for the four lanes that read at once to read four channels.
template <typename Spec>
__device__ void SplitDepth(int k, int* channel, int* tap) {
  using Tile = ConvTile<Spec>;
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
  using Tile = ConvTile<Spec>;
  if (k >= Tile::kDepth) return -1;
  int channel, tap;
  SplitDepth<Spec>(k, &channel, &tap);
  const int y = tap / Spec::kKernelW * Spec::kDilationH;
  const int x = tap % Spec::kKernelW * Spec::kDilationW;
  return channel * Tile::kPitch + y * Tile::kPatchW + x;
}

// Where a block works.
template <typename Spec>
struct ConvBlock {
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;

  int n;              // image
  int group;          // of the convolution
  int channel_block;  // among those of the group
  int strip;          // of kTilesPerBlock tiles, one below the other
  int column;         // of tiles

  __device__ ConvBlock() {
    unsigned rest = blockIdx.x;
    column = rest % Tile::kTilesAcross;
    rest /= Tile::kTilesAcross;
    strip = rest % Tile::kStrips;
    rest /= Tile::kStrips;
    channel_block = rest % Tile::kChannelBlocks;
    rest /= Tile::kChannelBlocks;
    group = rest % Spec::kGroups;
    n = rest / Spec::kGroups;
  }

  __device__ int first_channel() const {
    return group * Tile::kOutputs + channel_block * Tile::kBlockChannels;
  }
  __device__ int top(int tile) const {
    return (strip * Spec::kTilesPerBlock + tile) * Spec::kTileH;
  }
  __device__ int left() const { return column * Spec::kTileW; }
};

// Four neighbours, or one, from memory to shared memory; zeros unless `read`.
template <typename Spec, typename T, typename Index>
__device__ void CopyElements(const T* input, Index from, bool read, float* to) {
  if constexpr (Spec::kCopiesFour) {
    CopyQuadAsync(to, input + from, read);
  } else if constexpr (Spec::kCopiesInput) {
    CopyWordAsync(to, input + from, read);
  } else {
    *to = read ? Load(input, from) : 0.0f;
  }
}

// How the threads share kSlices planes of the patch: each has every kStep-th
// run of kTogether positions, so that its coordinates are found once, in kEach
// planes. Where positions are few, sets of threads have planes of their own.
template <typename Spec, int kTogether, int kSlices>
struct PatchShare {
  using Tile = ConvTile<Spec>;
  static constexpr int kRuns =
      ((Tile::kPatch + kTogether - 1) / kTogether + 31) / 32 * 32;
  static constexpr int kFitting =
      kRuns < Tile::kThreads ? Tile::kThreads / kRuns : 1;
  static constexpr int kSets = kFitting < kSlices ? kFitting : kSlices;
  static constexpr int kEach = (kSlices + kSets - 1) / kSets;
  static constexpr int kStep = (kSets > 1 ? kRuns : Tile::kThreads) * kTogether;

  static __device__ int First() {
    const int thread = threadIdx.x;
    if (kSets == 1) return thread * kTogether;
    return thread < kSets * kRuns ? thread % kRuns * kTogether : Tile::kPatch;
  }
  static __device__ int FirstSlice() {
    return kSets == 1 ? 0 : threadIdx.x / kRuns;
  }
};

// Brings the patch of one chunk to shared memory; zeros outside the input.
// Asynchronous where elements are copied as they are.
template <typename Spec>
__device__ void LoadPatch(const typename Spec::Tensors& t,
                          const ConvBlock<Spec>& block, int tile, int chunk,
                          float* patch) {
  using Tile = ConvTile<Spec>;
  using Input = typename Spec::Input;
  using Index = typename Spec::Index;
  using Share = PatchShare<Spec, Spec::kCopiesFour ? 4 : 1, Spec::kChunk>;
  constexpr Index kPlane = static_cast<Index>(Input::kH) * Input::kW;
  const int top = block.top(tile) * Spec::kStrideH - Spec::kPaddingH;
  const int left =
      block.left() * Spec::kStrideW - Spec::kPaddingW - Tile::kLead;
  const int channels = Tile::kInputs - chunk * Spec::kChunk;
  const Index plane = static_cast<Index>(block.n) * Input::kC +
                      block.group * Tile::kInputs + chunk * Spec::kChunk;

#pragma unroll 1
  for (int i = Share::First(); i < Tile::kPatch; i += Share::kStep) {
    const int y = top + i / Tile::kPatchW;
    const int x = left + i % Tile::kPatchW;
    const int h = y / Spec::kInsertH;
    const int w = x / Spec::kInsertW;
    const bool inside = y >= 0 && h < Input::kH && x >= 0 && w < Input::kW &&
                        h * Spec::kInsertH == y && w * Spec::kInsertW == x;
    const Index from = plane * kPlane + (inside ? h * Input::kW + w : 0);
#pragma unroll
    for (int k = 0; k < Share::kEach; ++k) {
      const int channel = Share::FirstSlice() + k * Share::kSets;
      if (Share::kEach * Share::kSets > Spec::kChunk &&
          channel >= Spec::kChunk) {
        continue;
      }
      const bool read = inside && channel < channels;
      CopyElements<Spec>(t.input, read ? from + channel * kPlane : 0, read,
                         patch + channel * Tile::kPitch + i);
    }
  }
}

// Begins to bring the weights of one chunk to shared memory.
template <typename Spec>
__device__ void LoadWeights(const typename Spec::Tensors& t,
                            const ConvBlock<Spec>& block, int chunk,
                            unsigned* weights) {
  using Tile = ConvTile<Spec>;
  const int index = (block.group * Tile::kChannelBlocks + block.channel_block) *
                        Tile::kChunks +
                    chunk;
  const unsigned* const from =
      t.packed + static_cast<long long>(index) * Tile::kWeightWords;
#pragma unroll 2
  for (int i = threadIdx.x; i < Tile::kWeightWords / 4; i += Tile::kThreads) {
    CopyQuadAsync(weights + i * 4, from + i * 4, true);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_TILE_CUH_
