// Stores a convolution's results of 16 bits, or such parts of them, where
// channels are the rows of the product (Spec::kRoundsSums): ops are done and
// results rounded in registers, then laid down by instructions for matrices, a
// row of shared memory for each channel, and stored from there as many at once
// as rows of the output allow.
//
// What ops read of a tensor as large as the result comes to the same rows
// behind the threads' backs while products are on their way, and is taken from
// there by such instructions.
//
// Results that are lines for the next convolution (Spec::kResultParts > 0,
// laid_lines.cuh) are scaled by pixel, and have as many parts, whose rows lie
// behind each other; behind these lie the pixels' scales.
#ifndef KILN_KERNEL_SOURCES_CONV_ROUNDED_CUH_
#define KILN_KERNEL_SOURCES_CONV_ROUNDED_CUH_

#include "async_copy.cuh"
#include "conv_block_tiles.cuh"
#include "conv_channels.cuh"
#include "conv_halves.cuh"
#include "conv_run_places.cuh"
#include "laid_lines.cuh"
#include "pixel_places.cuh"
#include "point.cuh"
#include "ptx_bulk.cuh"
#include "ptx_matrix.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec>
class RoundedTail {
 public:
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Places = RunPlaces<Spec>;
  static constexpr int kCount = Spec::kTilesN * 4;  // sums of a thread

  __device__ RoundedTail(const typename Spec::Tensors& t,
                         const BlockTiles<Spec>& tiles, float* scratch)
      : rows_(reinterpret_cast<uint4*>(scratch) +
              threadIdx.x / 32 * (kParts * kPartUnits + kScaleUnits)),
        is_aligned_(AreAligned(t)) {
    if constexpr (Spec::kReadsBeside) {
      if (tiles.block().sum_part == 0) Fetch(t, tiles, 0);
    }
  }

  // Brings the scales of the `number`-th tile's pixels.
  __device__ void BringScales(const typename Spec::Tensors& t,
                              const BlockTiles<Spec>& tiles, int number) const {
    const ConvBlock<Spec> block = tiles.BlockOf(number);
    const PixelPlaces<Spec> places(block, tiles.TileOf(number),
                                   Places::PartOfWarp());
    __syncwarp();  // all have read what was there
    static_assert(kScaleUnits <= 32);
    if (Lane() < kScaleUnits) {
      Scales()[Lane()] = __ldg(reinterpret_cast<const uint4*>(
          places.OfEight(t.result_scales, Lane())));
    }
    __syncwarp();
  }

  // The sums of the `number`-th tile.
  __device__ void Take(const typename Spec::Tensors& t,
                       const Channels<Spec>& channels,
                       const BlockTiles<Spec>& tiles, int number,
                       const float (&sums)[kCount]) {
    const ConvBlock<Spec> block = tiles.BlockOf(number);
    const int tile = tiles.TileOf(number);
    const Places places;
    const Point<Index> points[2] = {places.PointOfChannel(block, 0),
                                    places.PointOfChannel(block, 1)};
    const typename Spec::Channel both[2] = {channels(points[0]),
                                            channels(points[1])};
    // Beside scales registers have no room for both.
    const auto channel_of = [&](int half) {
      return kIsLaid ? channels(points[half]) : both[half];
    };
    const auto round = [&](int i, int half, unsigned beside) {
      const float2 values =
          Values(t, points[half], channel_of(half), sums[4 * i + 2 * half],
                 sums[4 * i + 2 * half + 1], beside);
      if constexpr (kIsLaid) {
        return PartsOf(values, ScalesNow(i));
      } else {
        return Parts{{RoundedPair(values.x, values.y, Stored())}};
      }
    };
    if constexpr (Spec::kReadsBeside) {
      RoundBeside(round);
      __syncwarp();
      StoreRows(t, block, tile, 0);
      if (number + 1 < tiles.Count()) {
        __syncwarp();  // all have read what was there
        Fetch(t, tiles, number + 1);
      }
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        __syncwarp();  // all have read what was there
        RoundHalf(half, round);
        __syncwarp();
        StoreRows(t, block, tile, half * kChannels);
      }
    }
  }

 private:
  using Stored = typename Spec::Stored;
  static constexpr bool kIsLaid = Spec::kResultParts > 0;
  static constexpr int kParts = kIsLaid ? Spec::kResultParts : 1;
  // Of two neighbours.
  struct Parts {
    unsigned words[kParts];
  };
  // Of a warp's channels, those whose rows it has at once; and pixels, in
  // eights, of which one instruction has two or four.
  static constexpr int kChannels = Spec::kReadsBeside ? 16 : 8;
  static constexpr int kEightsAtOnce = 32 / kChannels;
  static constexpr int kEights =
      (Spec::kTilesN + kEightsAtOnce - 1) / kEightsAtOnce * kEightsAtOnce;
  // Odd, so that eight rows are in different banks.
  static constexpr int kPitch = kEights + 1;
  static constexpr int kPartUnits = kChannels * kPitch;
  static constexpr int kScaleUnits = kIsLaid ? Spec::kTilesN : 0;

  // Neighbours that go to memory at once. Rows of the tile begin with them.
  // Rows of images that are split begin anywhere; lines are filled up, and
  // tiles begin with a unit of one.
  static constexpr bool kSplits = Spec::kSplitPixels > 0;
  static constexpr int kAll =
      kIsLaid ? 8 : Spec::Output::kW | Tile::kColumns | Spec::kStepW | 8;
  static constexpr int kVector = kSplits ? 1 : kAll & -kAll;
  static constexpr int kBytes = 2 * kVector;
  using Word = Access<kBytes>;
  static_assert(kAll % 2 == 0 && Tile::kTilePhases == 1 &&
                    Spec::kPhasesW == 1 && Spec::kBeforeW == 0,
                "Pairs are neighbours.");
  // Of a channel; lanes side by side, and channels that a warp has at once.
  static constexpr int kAcross = Spec::kTilesN * 8 / kVector;
  static constexpr int kLanes = kAcross <= 8 ? 8 : kAcross <= 16 ? 16 : 32;
  static constexpr int kSets = 32 / kLanes;
  static constexpr int kVisits = (kAcross + kLanes - 1) / kLanes;
  static constexpr int kRowPitch = kIsLaid ? static_cast<int>(Spec::kLinePitch)
                                           : static_cast<int>(Spec::Output::kW);
  static constexpr Index kPlane =
      kSplits ? static_cast<Index>(Spec::kSplitPixels)
              : static_cast<Index>(Spec::Output::kH) * kRowPitch;
  static constexpr Index kPart =
      static_cast<Index>(Spec::Output::kN) * Spec::Output::kC * kPlane;
  static_assert(!kIsLaid || (!kSplits && !Spec::kReadsBeside),
                "Lines are made of sums alone, in images as they lie.");

  static __device__ bool AreAligned(const typename Spec::Tensors& t) {
    auto places = reinterpret_cast<unsigned long long>(Spec::ResultOf(t));
    if constexpr (Spec::kReadsBeside) {
      places |= reinterpret_cast<unsigned long long>(Spec::BesideOf(t));
    }
    return places % kBytes == 0;
  }

  static __device__ int Lane() { return threadIdx.x % 32; }

  // What becomes of two neighbours' sums, and of what is read beside them.
  static __device__ float2 Values(const typename Spec::Tensors& t,
                                  const Point<Index>& at,
                                  const typename Spec::Channel& channel,
                                  float first, float second, unsigned beside) {
    if constexpr (Spec::kReadsBeside) {
      const typename Spec::BesidePair pair = {beside};
      return make_float2(Spec::Read(t, at, first, 1.0f, false, channel,
                                    Spec::template OfBeside<0>(pair)),
                         Spec::Read(t, at, second, 1.0f, false, channel,
                                    Spec::template OfBeside<1>(pair)));
    } else {
      return make_float2(Spec::Read(t, at, first, 1.0f, false, channel),
                         Spec::Read(t, at, second, 1.0f, false, channel));
    }
  }

  __device__ uint4* Scales() const { return rows_ + kParts * kPartUnits; }

  // Those of two neighbours, read no sooner than here: registers are few.
  __device__ unsigned ScalesNow(int i) const {
    const auto* const pairs =
        reinterpret_cast<const volatile unsigned*>(Scales());
    return pairs[4 * i + Lane() % 4];
  }

  static __device__ Parts PartsOf(float2 values, unsigned scales) {
    values.x *= __uint_as_float(scales << 16);
    values.y *= __uint_as_float(scales & 0xffff0000);
    Parts parts;
    parts.words[0] = RoundedPair(values.x, values.y, Float16());
    if constexpr (kParts == 2) {
      parts.words[1] = RestsOf(values.x, values.y, parts.words[0]);
    }
    return parts;
  }

  // The lane's row of four matrices that lie side by side, of eight channels.
  __device__ uint4* RowOfHalf() const {
    return rows_ + Lane() % 8 * kPitch + Lane() / 8;
  }
  // The same of two of both halves of the channels.
  __device__ uint4* RowOfBoth() const {
    return rows_ + Lane() % 16 * kPitch + Lane() / 16;
  }

  // Of half of the channels. What is rounded is laid down at once: registers
  // are few.
  template <typename Rounding>
  __device__ void RoundHalf(int half, const Rounding& round) const {
    uint4* const row = RowOfHalf();
#pragma unroll
    for (int i = 0; i < kEights; i += 4) {
      Parts parts[4] = {};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (i + k < Spec::kTilesN) parts[k] = round(i + k, half, 0);
      }
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        ptx::StoreMatrices(
            row + part * kPartUnits + i,
            make_uint4(parts[0].words[part], parts[1].words[part],
                       parts[2].words[part], parts[3].words[part]));
      }
    }
  }

  // Of all channels, in the place of what is read beside their sums.
  template <typename Rounding>
  __device__ void RoundBeside(const Rounding& round) const {
    WaitForCopies<0>();
    __syncwarp();
    uint4* const row = RowOfBoth();
#pragma unroll
    for (int i = 0; i < Spec::kTilesN; i += 2) {
      uint4 words = ptx::LoadMatrices(row + i);
      words.x = round(i, 0, words.x).words[0];
      words.y = round(i, 1, words.y).words[0];
      if (i + 1 < Spec::kTilesN) {
        words.z = round(i + 1, 0, words.z).words[0];
        words.w = round(i + 1, 1, words.w).words[0];
      }
      ptx::StoreMatrices(row + i, words);
    }
  }

  // Calls visit(row, at, has) for the lane's vectors of so many channels from
  // the warp's `first` on: where a vector lies in shared memory and, if the
  // output has it, in memory.
  template <typename Visit>
  __device__ void ForEachVector(const ConvBlock<Spec>& block, int tile,
                                int first, const Visit& visit) const {
    const int set = Lane() / kLanes;
    const int left_over = Tile::kOutputs -
                          block.channel_block * Tile::kBlockChannels -
                          Places::FirstOfWarp() - first - set;
    const Point<Index> first_point =
        Places::PointIn(block, Places::FirstOfWarp() + first);
    const Index start =
        (first_point.n * Spec::Output::kC + first_point.c + set) * kPlane;
#pragma unroll
    for (int i = 0; i < kVisits; ++i) {
      const int position = (i * kLanes + Lane() % kLanes) * kVector;
      if (position >= Spec::kTilesN * 8) break;
      const int column = position % Spec::kRunPitch;
      const int y = block.y(tile, Places::PartOfWarp() * Spec::kPartStep +
                                      position / Spec::kRunPitch);
      const int x = block.x(column);
      const bool inside = column < Tile::kColumns && block.IsInside(y, x);
      auto* const row =
          reinterpret_cast<Stored*>(rows_ + set * kPitch) + position;
      const Index at = start + (inside ? PixelAt(y, x) : 0);
      // Beside scales registers have no room for several at once.
#pragma unroll kIsLaid ? 1 : kChannels
      for (int c = 0; c < kChannels; c += kSets) {
        const bool has = inside && (kHasAll || c < left_over);
        visit(reinterpret_cast<Word*>(row + c * kPitch * 8), at + c * kPlane,
              has);
      }
    }
  }
  static constexpr bool kHasAll = Tile::kOutputs % Tile::kBlockChannels == 0;

  // Where a pixel lies behind the first image's first of a channel.
  static __device__ Index PixelAt(int y, int x) {
    const Index pixel = static_cast<Index>(y) * kRowPitch + x;
    if constexpr (kSplits) {
      const Index image = pixel / kPlane;
      return image * (Spec::Output::kC * kPlane) + (pixel - image * kPlane);
    }
    return pixel;
  }

  __device__ void StoreRows(const typename Spec::Tensors& t,
                            const ConvBlock<Spec>& block, int tile,
                            int first) const {
    constexpr int kPartWords = kPartUnits * 16 / sizeof(Word);
    Stored* const result = Spec::ResultOf(t);
    if (kIsLaid || is_aligned_) {
      ForEachVector(block, tile, first,
                    [&](const Word* row, Index at, bool has) {
#pragma unroll
                      for (int part = 0; part < kParts; ++part) {
                        if (!has) continue;
                        *reinterpret_cast<Word*>(result + part * kPart + at) =
                            row[part * kPartWords];
                      }
                    });
    } else {
      ForEachVector(
          block, tile, first, [&](const Word* row, Index at, bool has) {
            const auto* const numbers = reinterpret_cast<const Stored*>(row);
#pragma unroll 1
            for (int k = 0; has && k < kVector; ++k) {
              result[at + k] = numbers[k];
            }
          });
    }
  }

  // Sends for what ops read beside a tile's sums; zeros where there is nothing.
  __device__ void Fetch(const typename Spec::Tensors& t,
                        const BlockTiles<Spec>& tiles, int number) const {
    const ConvBlock<Spec> block = tiles.BlockOf(number);
    const int tile = tiles.TileOf(number);
    const auto* const beside = Spec::BesideOf(t);
    if (is_aligned_) {
      ForEachVector(block, tile, 0, [&](Word* row, Index at, bool has) {
        if constexpr (kSplits) {  // of which copies have at least two
          *row = has ? __ldg(&beside[at].bits) : Word();
        } else {
          ptx::CopyAsync<kBytes>(row, has ? beside + at : beside, has);
        }
      });
    } else {
      ForEachVector(block, tile, 0, [&](Word* row, Index at, bool has) {
        auto* const numbers = reinterpret_cast<Stored*>(row);
#pragma unroll 1
        for (int k = 0; k < kVector; ++k) {
          numbers[k].bits = has ? beside[at + k].bits : 0;
        }
      });
    }
    CommitCopies();
  }

  uint4* const rows_;  // of shared memory, the warp's
  const bool is_aligned_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_ROUNDED_CUH_
