// Filter weights as conv_wgmma.cu multiplies them: for each group, phase, block
// of output channels and chunk of input channels, for each part, for each pair
// of octet and filter tap (octet by octet, or tap by tap where octets lie
// together), for each output channel of the block, eight 16-bit numbers: of
// eight input channels, or of all of kOctetColumns columns of the filter. Of
// these the last eight may begin early; columns that two have count half in
// each, so that no weight of 0 meets an infinity, and so do rows of the filter
// that two parts of it have (conv_tile.cuh). Where columns come in pairs, the
// first eight have one alone (conv_column_pairs.cuh). For this reason, where
// infinities lie among other numbers (lay_lines.cu), parts of a weight have its
// sign and are not 0 unless it is. Only between groups that are joined there
// are zeros, of which conv_joined.cuh takes care. Behind them stand the factors
// that undo the scales of the output channels. Runs when the weights change,
// not at each launch; a warp packs an output channel.
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
    for (int i = lane_; i < Tile::kWeightPhases * Tile::kChunks * kEights;
         i += 32) {
      Pack(i / kEights / Tile::kChunks, i / kEights % Tile::kChunks,
           i % kEights, PowerOfTwo(exponent));
    }
  }

 private:
  static constexpr int kTaps = Spec::kKernelH * Spec::kKernelW;

  // Weight of an input channel of the group and a tap of the filter.
  __device__ float WeightAt(int input, int tap) const {
    if constexpr (Spec::kJoined > 1) return JoinedWeightAt(input, tap);
    if constexpr (Spec::kColumnsApart > 1) return ColumnWeightAt(input, tap);
    if constexpr (Tile::kChannelPhases > 1) return PhaseWeightAt(input, tap);
    const int row =
        Spec::kTransposed
            ? (group_ * Tile::kInputs + input) * Tile::kOutputs + output_
            : (group_ * Tile::kOutputs + output_) * Tile::kInputs + input;
    return Load(t_.weight, row * kTaps + tap);
  }
  // The same of one of a filter's columns, which lie side by side.
  __device__ float ColumnWeightAt(int input, int tap) const {
    const int row = output_ / Spec::kColumnsApart * Tile::kInputs + input;
    return Load(t_.weight, (row * kTaps + tap) * Spec::kColumnsApart +
                               output_ % Spec::kColumnsApart);
  }
  // The same of a phase of a transposed filter: each of its taps is the first
  // of as many as there are phases, of which it has its own.
  __device__ float PhaseWeightAt(int input, int tap) const {
    constexpr int kAcross = Spec::kChannelPhasesW;
    const int phase = output_ % Tile::kChannelPhases;
    const int y =
        (Spec::kKernelH - 1 - tap / Spec::kKernelW) * Spec::kChannelPhasesH +
        phase / kAcross;
    const int x =
        (Spec::kKernelW - 1 - tap % Spec::kKernelW) * kAcross + phase % kAcross;
    const int row = input * (Tile::kOutputs / Tile::kChannelPhases) +
                    output_ / Tile::kChannelPhases;
    return Load(t_.weight, row * kTaps * Tile::kChannelPhases +
                               y * Spec::kKernelW * kAcross + x);
  }
  // The same of groups that are one here: 0 between those that are different.
  __device__ float JoinedWeightAt(int input, int tap) const {
    constexpr int kInputs = Tile::kInputs / Spec::kJoined;
    constexpr int kOutputs = Tile::kOutputs / Spec::kJoined;
    if (input / kInputs != output_ / kOutputs) return 0.0f;
    const int row =
        Spec::kTransposed
            ? (group_ * Tile::kInputs + input) * kOutputs + output_ % kOutputs
            : (group_ * Tile::kOutputs + output_) * kInputs + input % kInputs;
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

  // Columns of the filter that a phase has, where an octet begins, and where
  // the last begins and the one before ends.
  static constexpr int kColumns =
      Spec::kOctetColumns == 1 ? Spec::kTapsW : Spec::kKernelW;
  // Rows of the filter that a phase has, in all parts.
  static constexpr int kRows =
      Spec::kRowParts == 1 ? Spec::kTapsH : Spec::kKernelH;
  static constexpr int kLastColumn = kColumns - Spec::kOctetColumns;
  static constexpr int kSecondEnd = (Spec::kTapsW - 1) * Spec::kOctetColumns;
  static __device__ int ColumnOfTap(int tap) {
    if (Spec::kPairsColumns) return max(tap % Spec::kTapsW * 2 - 1, 0);
    return min(tap % Spec::kTapsW * Spec::kOctetColumns, kLastColumn);
  }

  // The filter's tap that is in row `y` and column `x` of a phase; kTaps where
  // there is none. A transposed convolution mirrors its filter.
  static __device__ int FilterTap(int phase, int row, int column) {
    if constexpr (!Spec::kTransposed) return row * Spec::kKernelW + column;
    const int y = FilterOffset(phase / Spec::kPhasesW, row,
                               Spec::kPhasesH / Spec::kInterleave,
                               Spec::kPhaseStartH, kRows);
    const int x = FilterOffset(phase % Spec::kPhasesW, column, Spec::kPhasesW,
                               Spec::kPhaseStartW, kColumns);
    return y < Spec::kKernelH && x < Spec::kKernelW ? y * Spec::kKernelW + x
                                                    : kTaps;
  }
  static __device__ int FilterOffset(int phase, int tap, int phases, int start,
                                     int taps) {
    return (phase + start) % phases + phases * (taps - 1 - tap);
  }

  static __device__ float Scaled(float weight, float scale) {
    return Spec::kScales ? ScaledAboveZero(weight, scale) : weight * scale;
  }

  __device__ void Pack(int phase, int chunk, int eight, float scale) const {
    constexpr bool kHasColumns = Spec::kOctetColumns > 1;
    constexpr bool kByOctets = Group::kOctetsOfRow == 1;
    const int octet = kByOctets ? eight / Group::kTaps : eight % Group::kOctets;
    const int tap = kByOctets ? eight % Group::kTaps : eight / Group::kOctets;
    const int row =
        tap / Spec::kTapsW + Tile::RowOfPart(chunk % Spec::kRowParts);
    float weights[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int input =
          kHasColumns ? k % Tile::kInputs
                      : chunk / Spec::kRowParts * Spec::kChunk + octet * 8 + k;
      const int right = kHasColumns ? k / Tile::kInputs : 0;
      const int column = ColumnOfTap(tap) + right;
      const bool has_tap = octet < Group::kOctets && tap < Group::kTaps;
      const int filter_tap = has_tap ? FilterTap(phase, row, column) : kTaps;
      const bool is_alone = Spec::kPairsColumns && tap % Spec::kTapsW == 0;
      const bool exists = filter_tap < kTaps && input < Tile::kInputs &&
                          right < (is_alone ? 1 : Spec::kOctetColumns) &&
                          output_ < Tile::kOutputs;
      const bool is_in_two =
          !Spec::kPairsColumns && column >= kLastColumn && column < kSecondEnd;
      const float share = (kHasColumns && is_in_two ? 0.5f : 1.0f) *
                          (Tile::IsInTwoParts(row) ? 0.5f : 1.0f);
      weights[k] =
          exists ? Scaled(WeightAt(input, filter_tap), scale * share) : 0.0f;
    }
    const int block =
        (group_ * Tile::kWeightPhases + phase) * Tile::kChannelBlocks +
        output_ / Tile::kBlockChannels;
    uint4* const to = reinterpret_cast<uint4*>(t_.packed) +
                      static_cast<long long>(block * Tile::kChunks + chunk) *
                          Group::kPhaseWeights +
                      eight * Tile::kBlockChannels +
                      output_ % Tile::kBlockChannels;
    if constexpr (Spec::kLaysLines) {
      StorePartsOfOneSign<Spec::kWeightParts>(weights, to, Group::kWeightPart);
    } else {
      StoreParts<Spec::kIsBFloat16, Spec::kWeightParts>(weights, to,
                                                        Group::kWeightPart);
    }
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
