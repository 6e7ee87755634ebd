// Filter weights in the order and precision in which conv_mma.cu reads them:
// for each group, block of output channels and chunk of input channels, for
// each step of 8 through k, for each 8 output channels, the two words of every
// lane. Runs when the weights change, not at each launch.
//
// Where kSplitsWeight, a weight is the sum of two TF32 numbers and its
// remainder stands behind it: 22 bits and more of the 24.
#include "conv_patch.cuh"
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
  using Patch = ConvPatch<Spec>;
  int channel, tap;
  SplitDepth<Spec>(k, &channel, &tap);
  const int input = chunk * Spec::kChunk + channel;
  if (k >= Patch::kDepth || input >= Tile::kInputs ||
      output >= Tile::kOutputs) {
    return 0.0f;
  }
  if constexpr (Spec::kTransposed) {
    const int row = (group * Tile::kInputs + input) * Tile::kOutputs + output;
    return Load(t.weight, row * Patch::kTaps + Patch::kTaps - 1 - tap);
  } else {
    const int row = (group * Tile::kOutputs + output) * Tile::kInputs + input;
    return Load(t.weight, row * Patch::kTaps + tap);
  }
}

template <typename Spec>
__device__ void PackWeights(const typename Spec::Tensors& t) {
  using Tile = ConvTile<Spec>;
  using Patch = ConvPatch<Spec>;
  constexpr int kFragments = Tile::kBlockChannels / 8;
  constexpr int kCount = Spec::kGroups * Tile::kChannelBlocks * Tile::kChunks *
                         Patch::kSteps * kFragments * 32;
#pragma unroll 1
  for (int i = GridStart<int>(); i < kCount; i += GridStride<int>()) {
    const int lane = i % 32;
    int rest = i / 32;
    const int fragment = rest % kFragments;
    rest /= kFragments;
    const int step = rest % Patch::kSteps;
    rest /= Patch::kSteps;
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
          is_finite ? NearestFiniteTf32(weight) : TruncatedTf32(weight);
      const float rest_of_weight = weight - __uint_as_float(large);
      const unsigned small = is_finite ? NearestTf32(rest_of_weight) : 0;
      unsigned* const words = t.packed + i * Patch::kFragmentWords + half;
      words[0] = large;
      if constexpr (Spec::kSplitsWeight) words[2] = small;
    }
  }
}

}  // namespace kiln
