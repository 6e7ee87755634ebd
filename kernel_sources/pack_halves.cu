// Filter weights as conv_wgmma.cu multiplies them: for each group, phase, block
// of output channels and chunk of input channels, for each part, for each pair
// of octet and filter tap, for each output channel of the block, eight 16-bit
// numbers. Behind them stand the factors that undo the scales of the output
// channels. Runs when the weights change, not at each launch; a warp packs an
// output channel.
#include "conv_halves.cuh"
#include "conv_stages.cuh"
#include "conv_tile.cuh"
#include "math.cuh"
#include "reducers.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec>
class ChannelPacker {
 public:
  using Tile = ConvTile<Spec>;
  using Group = GroupTile<Spec>;

  // `channel` counts those of all blocks, those that only fill one included.
  __device__ ChannelPacker(const typename Spec::Tensors& t, int channel)
      : t_(t), lane_(threadIdx.x % 32) {
    constexpr int kRounded = Tile::kChannelBlocks * Tile::kBlockChannels;
    group_ = channel / kRounded;
    output_ = channel % kRounded;
  }

  __device__ void Run(int channel) {
    const int exponent = Spec::kScales ? Exponent() : 0;
    if (lane_ == 0 && Spec::kScales) {
      reinterpret_cast<float*>(t_.packed)[Spec::kFactorsAt + channel] =
          PowerOfTwo(-exponent);
    }
    constexpr int kEights = Group::kSteps * 2;
#pragma unroll 1
    for (int i = lane_; i < Tile::kPhases * Tile::kChunks * kEights; i += 32) {
      Pack(i / kEights / Tile::kChunks, i / kEights % Tile::kChunks,
           i % kEights, PowerOfTwo(exponent));
    }
  }

 private:
  static constexpr int kTaps = Spec::kKernelH * Spec::kKernelW;

  // Weight of an input channel of the group and a tap of the filter.
  __device__ float WeightAt(int input, int tap) const {
    const int row =
        Spec::kTransposed
            ? (group_ * Tile::kInputs + input) * Tile::kOutputs + output_
            : (group_ * Tile::kOutputs + output_) * Tile::kInputs + input;
    return Load(t_.weight, row * kTaps + tap);
  }

  __device__ int Exponent() const {
    unsigned most = 0;
    if (output_ < Tile::kOutputs) {
#pragma unroll 1
      for (int i = lane_; i < Tile::kInputs * kTaps; i += 32) {
        const unsigned bits = MagnitudeBits(WeightAt(i / kTaps, i % kTaps));
        if (bits < kInfinityBits) most = max(most, bits);
      }
    }
    return ScaleExponent(__reduce_max_sync(~0u, most));
  }

  // The filter's tap that `tap` of a phase is; kTaps where there is none. A
  // transposed convolution mirrors its filter.
  static __device__ int FilterTap(int phase, int tap) {
    if constexpr (!Spec::kTransposed) return tap;
    const int y =
        FilterOffset(phase / Spec::kPhasesW, tap / Spec::kTapsW, Spec::kPhasesH,
                     Spec::kPhaseStartH, Spec::kTapsH);
    const int x =
        FilterOffset(phase % Spec::kPhasesW, tap % Spec::kTapsW, Spec::kPhasesW,
                     Spec::kPhaseStartW, Spec::kTapsW);
    return y < Spec::kKernelH && x < Spec::kKernelW ? y * Spec::kKernelW + x
                                                    : kTaps;
  }
  static __device__ int FilterOffset(int phase, int tap, int phases, int start,
                                     int taps) {
    return (phase + start) % phases + phases * (taps - 1 - tap);
  }

  __device__ void Pack(int phase, int chunk, int eight, float scale) const {
    const int octet = eight % Group::kOctets;
    const int tap = eight / Group::kOctets;
    const int filter_tap = tap < Group::kTaps ? FilterTap(phase, tap) : kTaps;
    const int input = chunk * Spec::kChunk + octet * 8;
    float weights[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const bool exists = filter_tap < kTaps && input + k < Tile::kInputs &&
                          output_ < Tile::kOutputs;
      weights[k] = exists ? WeightAt(input + k, filter_tap) * scale : 0.0f;
    }
    const int block = (group_ * Tile::kPhases + phase) * Tile::kChannelBlocks +
                      output_ / Tile::kBlockChannels;
    uint4* const to = reinterpret_cast<uint4*>(t_.packed) +
                      static_cast<long long>(block * Tile::kChunks + chunk) *
                          Group::kWeights +
                      eight * Tile::kBlockChannels +
                      output_ % Tile::kBlockChannels;
    StoreParts<Spec::kIsBFloat16, Spec::kWeightParts>(weights, to,
                                                      Group::kWeightPart);
  }

  const typename Spec::Tensors& t_;
  const int lane_;
  int group_, output_;
};

template <typename Spec>
__device__ void PackHalves(const typename Spec::Tensors& t) {
  using Tile = ConvTile<Spec>;
  constexpr int kCount =
      Spec::kGroups * Tile::kChannelBlocks * Tile::kBlockChannels;
  const int channel = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (channel < kCount) ChannelPacker<Spec>(t, channel).Run(channel);
}

}  // namespace kiln
