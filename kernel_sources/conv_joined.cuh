// Groups of few channels that conv_wgmma.cu multiplies as one, Spec::kJoined of
// them, with weights of 0 between channels of different ones (pack_halves.cu).
//
// What is multiplied so in vain costs less than tiles of few channels. But a 0
// that meets another group's infinity or NaN makes a NaN of a sum that has
// none. Nothing else is wrong, and a sum that is no NaN is right. So those that
// are NaN are computed again, from memory and of their own group's channels
// alone.
#ifndef KILN_KERNEL_SOURCES_CONV_JOINED_CUH_
#define KILN_KERNEL_SOURCES_CONV_JOINED_CUH_

#include "conv_halves.cuh"
#include "conv_run_places.cuh"
#include "conv_stages.cuh"
#include "conv_tile.cuh"
#include "conv_warp.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec>
class JoinedGroups {
 public:
  using Tile = ConvTile<Spec>;
  using Group = GroupTile<Spec>;
  using Index = typename Spec::Index;
  static constexpr int kCount = Spec::kTilesM * Spec::kTilesN * 4;

  // Of a tile whose sums have the scale that `factor` undoes, and that of the
  // weights.
  __device__ JoinedGroups(const typename Spec::Tensors& t,
                          const ConvBlock<Spec>& block, int tile, float factor)
      : t_(t),
        block_(block),
        tile_(tile),
        scale_(Spec::kScales ? InverseOfPower(factor) : 1.0f) {}

  // Clears what products read of stages and nobody writes: sums of such pixels
  // are not used, but each that is no number costs time. By all threads.
  static __device__ void ClearRest(const ConvStages<Spec>& stages) {
    constexpr int kOfImage = Spec::kImagePositions - Group::kImagePatch;
    constexpr int kCount = Spec::kStages * Spec::kInputParts * Group::kOctets *
                           Spec::kImages * kOfImage;
    for (int i = threadIdx.x; i < kCount; i += blockDim.x) {
      int rest = i / kOfImage;
      const int image = rest % Spec::kImages;
      rest /= Spec::kImages;
      const int octet = rest % Group::kOctets;
      rest /= Group::kOctets;
      const int position =
          image * Spec::kImagePositions + Group::kImagePatch + i % kOfImage;
      stages.pixels(rest /
                    Spec::kInputParts)[rest % Spec::kInputParts * Group::kPart +
                                       Group::UnitOf(octet, position)] =
          make_uint4(0, 0, 0, 0);
    }
  }

  // Whether any of the thread's sums is an infinity or NaN.
  static __device__ bool HasNonFinite(const Sums<Spec>& sums) {
    constexpr int kAtOnce = 4;
    float zeros[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      zeros[i % kAtOnce] = fmaf(At(sums, i), 0.0f, zeros[i % kAtOnce]);
    }
    const float all = zeros[0] + zeros[1] + (zeros[2] + zeros[3]);
    return all != all;
  }

  // Computes those again that are NaN. All lanes of a warp go the same way, as
  // the compiler must see, or products wait for each other.
  __device__ void Mend(Sums<Spec>* sums) const {
#pragma unroll 1
    for (int i = 0; i < kCount; ++i) {
      const float sum = Select(*sums, i);
      const Place place = PlaceOf(i);
      const bool is_wrong = sum != sum && place.inside;
      if (!__any_sync(~0u, is_wrong)) continue;
      const float again = SumAt(place);
      Put(i, is_wrong ? again : sum, sums);
    }
  }

 private:
  static_assert(Spec::kOctetColumns == 1 && Tile::kWeightPhases == 1 &&
                    !Spec::kTakesLines && !Spec::kWrapsRows,
                "Of others pixels or weights lie elsewhere.");
  static_assert(!Spec::kChannelRows ||
                    (Spec::kTilesM == 1 && Spec::kImages == 1),
                "A thread has pixels of one run.");

  // A sum's channel of the block, and its pixel of the output.
  struct Place {
    int channel, y, x;
    bool inside;
  };

  static __device__ float At(const Sums<Spec>& sums, int i) {
    return sums.d[i / (kCount / Spec::kTilesM)][i % (kCount / Spec::kTilesM)];
  }
  // The same of an `i` that is known as the kernel runs alone: sums are
  // registers.
  static __device__ float Select(const Sums<Spec>& sums, int i) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kCount; ++k) sum = k == i ? At(sums, k) : sum;
    return sum;
  }
  static __device__ void Put(int i, float sum, Sums<Spec>* sums) {
    constexpr int kOfRun = kCount / Spec::kTilesM;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      float& own = sums->d[k / kOfRun][k % kOfRun];
      own = k == i ? sum : own;
    }
  }

  __device__ Place PlaceOf(int i) const {
    return Spec::kChannelRows ? PlaceInRun(i) : PlaceOfRow(i);
  }
  // Where channels are the rows of the product.
  __device__ Place PlaceInRun(int i) const {
    const RunPlaces<Spec> places;
    const int position = i / 4 * 8 + places.pair * 2 + i % 2;
    const int row = places.part * Spec::kPartStep + position / Spec::kRunPitch;
    const int column = position % Spec::kRunPitch;
    const int y = block_.y(tile_, row);
    const int x = block_.x(column);
    return {places.first + i / 2 % 2 * 8, y, x,
            column < Spec::kTileW && block_.IsInside(y, x)};
  }
  // Where pixels are.
  __device__ Place PlaceOfRow(int i) const {
    constexpr int kOfRun = kCount / Spec::kTilesM;
    const WarpTile<Spec> warp;
    const int m = i / kOfRun;
    const int half = i / 2 % 2;
    return {warp.channel() + i % kOfRun / 4 * 8 + i % 2,
            block_.y(tile_, warp.row(m, half)), block_.x(warp.column(m, half)),
            warp.IsInside(block_, tile_, m, half)};
  }

  // Of the group that the output channel is of; of the last channel where it
  // is none.
  __device__ float SumAt(const Place& place) const {
    constexpr int kInputs = Tile::kInputs / Spec::kJoined;
    constexpr int kOutputs = Tile::kOutputs / Spec::kJoined;
    const int output =
        block_.channel_block * Tile::kBlockChannels + place.channel;
    const int first = min(output, Tile::kOutputs - 1) / kOutputs * kInputs;
    float sum = 0.0f;
#pragma unroll 1
    for (int i = 0; i < kInputs * Spec::kRowParts; ++i) {
      const int part = i % Spec::kRowParts;
      const int input = first + i / Spec::kRowParts;
#pragma unroll 1
      for (int tap = 0; tap < Group::kTaps; ++tap) {
        const int row = tap / Spec::kTapsW + Tile::RowOfPart(part);
        sum = fmaf(InputAt(place, input, row, tap % Spec::kTapsW),
                   WeightAt(place.channel, input, part, tap), sum);
      }
    }
    return sum;
  }

  // Scaled; zero outside.
  __device__ float InputAt(const Place& place, int channel, int row,
                           int column) const {
    // The padding is that of the first tile, which may begin before the output.
    const int y = (place.y + Spec::kBeforeH) * Spec::kStrideH -
                  Spec::kPaddingH + row * Spec::kDilationH;
    const int x = (place.x + Spec::kBeforeW) * Spec::kStrideW -
                  (Spec::kPaddingW - Spec::kLead) + column * Spec::kDilationW;
    const bool inside =
        y >= 0 && y < Spec::Input::kH && x >= 0 && x < Spec::Input::kW;
    if (!inside) return 0.0f;
    const Index of_channel = static_cast<Index>(block_.n) * Spec::Input::kC +
                             block_.group * Tile::kInputs + channel;
    return Load(t_.input,
                (of_channel * Spec::Input::kH + y) * Spec::Input::kW + x) *
           scale_;
  }

  // The packed one of a channel of the block, in a part of the filter's rows.
  __device__ float WeightAt(int output, int input, int part, int tap) const {
    const int chunk = input / Spec::kChunk * Spec::kRowParts + part;
    const int octet = input % Spec::kChunk / 8;
    const int eight = Group::kOctetsOfRow == 1 ? octet * Group::kTaps + tap
                                               : tap * Group::kOctets + octet;
    const long long of_chunk =
        (block_.group * Tile::kChannelBlocks + block_.channel_block) *
            Tile::kAllChunks +
        chunk;
    const auto* const unit = reinterpret_cast<const uint4*>(t_.packed) +
                             of_chunk * Group::kPhaseWeights +
                             eight * Tile::kBlockChannels + output;
    float weight = 0.0f;
#pragma unroll
    for (int k = 0; k < Spec::kWeightParts; ++k) {
      weight += PartOf(unit + k * Group::kWeightPart, input % 8);
    }
    return weight;
  }
  static __device__ float PartOf(const uint4* unit, int k) {
    if constexpr (Spec::kIsBFloat16) {
      return ToFloat(reinterpret_cast<const BFloat16*>(unit)[k]);
    } else {
      return ToFloat(reinterpret_cast<const Float16*>(unit)[k]);
    }
  }

  const typename Spec::Tensors& t_;
  const ConvBlock<Spec>& block_;
  const int tile_;
  const float scale_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_JOINED_CUH_
