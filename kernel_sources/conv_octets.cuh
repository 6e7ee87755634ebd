// The eight numbers that conv_wgmma.cu has of a position, as they are read: of
// eight channels, of one pixel or of it and the next; or of few channels those
// of kOctetColumns pixels, as far apart as columns of the filter.
#ifndef KILN_KERNEL_SOURCES_CONV_OCTETS_CUH_
#define KILN_KERNEL_SOURCES_CONV_OCTETS_CUH_

#include "conv_positions.cuh"
#include "conv_tile.cuh"
#include "storage_types.cuh"
#include "store_pairs.cuh"

namespace kiln {

// A number between memory and a stage: its bits where they are multiplied as
// they are stored, its value where it is scaled first.
template <bool kScales>
struct OctetNumber {
  using Type = unsigned;
  template <typename T>
  static __device__ Type Of(T stored) {
    return stored.bits;
  }
};
template <>
struct OctetNumber<true> {
  using Type = float;
  template <typename T>
  static __device__ Type Of(T stored) {
    return ToFloat(stored);
  }
};

// Neighbours that may begin between accesses, or zeros: four of them, eight.
template <typename T>
__device__ uint2 GatherFour(const T* from, bool read) {
  unsigned pairs[2] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (read) pairs[k / 2] |= static_cast<unsigned>(from[k].bits) << k % 2 * 16;
  }
  return make_uint2(pairs[0], pairs[1]);
}
template <typename T>
__device__ uint4 GatherEight(const T* from, bool read) {
  const uint2 first = GatherFour(from, read);
  const uint2 second = GatherFour(from + 4, read);
  return make_uint4(first.x, first.y, second.x, second.y);
}

template <typename Spec>
class ConvOctets {
 public:
  using Number = OctetNumber<Spec::kScales>;
  using Octet = typename Number::Type[8];
  using Index = typename Spec::Index;
  using Tensors = typename Spec::Tensors;
  using Tile = ConvTile<Spec>;

  // The first element of a chunk's first channel.
  static __device__ Index FirstOf(const ConvBlock<Spec>& block, int chunk) {
    return (static_cast<Index>(block.n) * Spec::Input::kC +
            block.group * Tile::kInputs + block.FirstOfChunk(chunk)) *
           kPlane;
  }

  // Whether two pixels may be read as one: the tensor may begin between words.
  static __device__ bool IsAligned(const Tensors& t) {
    return ArePairsAligned(t.input);
  }

  // Of a position in column `column` of the input (AlongRow), whose element of
  // the chunk's first channel is `from`; zeros outside. The chunk has so many
  // channels, 0 if nothing is to be read. kAligned: see IsAligned.
  template <bool kAligned>
  static __device__ void Read(const Tensors& t, Index from, int column,
                              int octet, int channels, Octet& values) {
    if constexpr (Spec::kOctetColumns > 1) {
      ReadColumns(t, from, column, channels > 0, values);
    } else {
      const bool inside = PatchPositions<Spec>::IsColumn(column);
      ReadEight<kAligned>(t, from, octet * 8, inside ? channels : 0, values);
    }
  }

  // Of two neighbouring columns, whose first element of the first channel is
  // `from`; zeros unless `read`.
  template <bool kAligned>
  static __device__ void ReadPair(const Tensors& t, Index from, bool read,
                                  Octet& values) {
#pragma unroll
    for (auto& value : values) value = 0;
    const auto* const first = t.input + from;
#pragma unroll
    for (int k = 0; k < Tile::kInputs; ++k) {
      const auto pair = LoadPairIf<kAligned>(read, first + k * kPlane, 0);
      values[k] = HalfOf<0>(first, pair);
      values[Tile::kInputs + k] = HalfOf<1>(first, pair);
    }
  }
  // The second of these, with zeros in the place of what is not.
  static __device__ void TakeSecond(const Octet& pair, Octet& values) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      values[k] = k < Tile::kInputs ? pair[Tile::kInputs + k] : 0;
    }
  }

 private:
  static constexpr Index kPlane =
      static_cast<Index>(Spec::Input::kH) * Spec::Input::kW;

  // A number of a pair; where it stays as it is, in the lower half of a word.
  template <int kHalf, typename T>
  static __device__ typename Number::Type HalfOf(
      const T* /*tensor*/, const typename PairOf<T>::Type& pair) {
    if constexpr (Spec::kScales) {
      return OfPair<T, kHalf>(pair);
    } else {
      return pair >> kHalf * 16;
    }
  }

  static __device__ typename Number::Type NumberAt(const Tensors& t, Index at,
                                                   bool read) {
    return read ? Number::Of(t.input[at]) : typename Number::Type{};
  }

  template <bool kAligned>
  static __device__ void ReadEight(const Tensors& t, Index from, int channel,
                                   int channels, Octet& values) {
    constexpr bool kWhole = Tile::kInputs % Spec::kChunk == 0;
    constexpr bool kHasWholeOctets = Tile::kInputs % 8 == 0;
    const auto* const first = t.input + (from + channel * kPlane);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int last = kWhole ? 0 : kHasWholeOctets ? channel : channel + k;
      const bool read = last < channels;
      if constexpr (Spec::kTakesPairs) {
        values[k] = LoadPairIf<kAligned>(read, first + k * kPlane, 0);
      } else {
        values[k] = NumberAt(t, from + (channel + k) * kPlane, read);
      }
    }
  }

  static __device__ void ReadColumns(const Tensors& t, Index from, int column,
                                     bool has_row, Octet& values) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int right = k / Tile::kInputs * Spec::kDilationW;
      const bool read = k < Tile::kInputs * Spec::kOctetColumns && has_row &&
                        PatchPositions<Spec>::IsColumn(column + right);
      values[k] = NumberAt(t, from + k % Tile::kInputs * kPlane + right, read);
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_OCTETS_CUH_
