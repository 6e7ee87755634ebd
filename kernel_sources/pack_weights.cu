// Filter weights in the order and precision in which conv_mma.cu reads them:
// for each group, block of output channels and chunk of input channels, for
// each step of 8 through k, for each 8 output channels, the two words of every
// lane. Runs when the weights change, not at each launch.
//
// Where kSplitsWeight, a weight is the sum of two TF32 numbers and its
// remainder stands behind it: 22 bits and more of the 24.
#include "conv_tile.cuh"
#include "mma.cuh"
#include "point.cuh"
#include "reducers.cuh"
#include "storage_types.cuh"

namespace kiln {

// Weight of output channel `output` of a group at position k of a chunk; 0
// where either is padding.
template <typename Spec>
__device__ float WeightAt(const typename Spec::Tensors& t, int group,
                          int output, int chunk, int k) {
  using Tile = ConvTile<Spec>;
  int channel, tap;
  SplitDepth<Spec>(k, &channel, &tap);
  const int input = chunk * Spec::kChunk + channel;
  if (k >= Tile::kDepth || input >= Tile::kInputs || output >= Tile::kOutputs) {
    return 0.0f;
  }
  if constexpr (Spec::kTransposed) {
    const int row = (group * Tile::kInputs + input) * Tile::kOutputs + output;
    return Load(t.weight, row * Tile::kTaps + Tile::kTaps - 1 - tap);
  } else {
    const int row = (group * Tile::kOutputs + output) * Tile::kInputs + input;
    return Load(t.weight, row * Tile::kTaps + tap);
  }
}

// In the order of conv_wgmma.cu: for each step, the first four positions of k,
// then the others; for each the columns, then those of the small parts.
// `fragment` is the number of the step's first 8 x 8 matrix.
template <typename Spec>
__device__ void StoreColumn(const typename Spec::Tensors& t, int fragment,
                            int half, int column, int k, unsigned large,
                            unsigned small) {
  using Tile = ConvTile<Spec>;
  constexpr int kColumns = (Spec::kSplitsWeight ? 2 : 1) * Tile::kBlockChannels;
  unsigned* const words = t.packed + fragment * 32 * Tile::kFragmentWords +
                          (half * kColumns + column) * 4 + k;
  words[0] = large;
  if constexpr (Spec::kSplitsWeight) words[Tile::kBlockChannels * 4] = small;
}

template <typename Spec>
__device__ void PackWeights(const typename Spec::Tensors& t) {
  using Tile = ConvTile<Spec>;
  constexpr int kFragments = Tile::kBlockChannels / 8;
  constexpr int kCount = Spec::kGroups * Tile::kChannelBlocks * Tile::kChunks *
                         Tile::kSteps * kFragments * 32;
#pragma unroll 1
  for (int i = GridStart<int>(); i < kCount; i += GridStride<int>()) {
    const int lane = i % 32;
    int rest = i / 32;
    const int fragment = rest % kFragments;
    rest /= kFragments;
    const int step = rest % Tile::kSteps;
    rest /= Tile::kSteps;
    const int chunk = rest % Tile::kChunks;
    rest /= Tile::kChunks;
    const int block = rest % Tile::kChannelBlocks;
    const int group = rest / Tile::kChannelBlocks;

    const int column = fragment * 8 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int k = step * 8 + lane % 4 + 4 * half;
      const float weight = WeightAt<Spec>(
          t, group, block * Tile::kBlockChannels + column, chunk, k);
      const bool is_finite = fabsf(weight) < Infinity();
      const unsigned large =
          is_finite ? NearestTf32(weight) : TruncatedTf32(weight);
      const float rest_of_weight = weight - __uint_as_float(large);
      const unsigned small = is_finite ? NearestTf32(rest_of_weight) : 0;
      if constexpr (Spec::kWarpgroups > 0) {
        StoreColumn<Spec>(t, i / 32 - fragment, half, column, lane % 4, large,
                          small);
      } else {
        unsigned* const words = t.packed + i * Tile::kFragmentWords + half;
        words[0] = large;
        if constexpr (Spec::kSplitsWeight) words[2] = small;
      }
    }
  }
}

}  // namespace kiln
