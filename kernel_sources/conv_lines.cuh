// What producers of conv_wgmma.cu bring where the filter has one tap
// (Spec::kTakesLines): eight neighbouring pixels of a channel as one unit of 16
// bytes, in the order in which they lie in memory. So a unit is one or two
// accesses, and nothing changes places; the tensor cores read pixels side by
// side instead of channels (wgmma.cuh).
#ifndef KILN_KERNEL_SOURCES_CONV_LINES_CUH_
#define KILN_KERNEL_SOURCES_CONV_LINES_CUH_

#include "conv_batches.cuh"
#include "conv_octets.cuh"
#include "conv_positions.cuh"
#include "conv_stages.cuh"

namespace kiln {

template <typename Spec>
class ConvLines {
  using Group = GroupTile<Spec>;
  using Positions = PatchPositions<Spec>;
  using Tensors = typename Spec::Tensors;
  using Index = typename Spec::Index;
  static constexpr int kThreads = ConvStages<Spec>::kProducerThreads;
  static constexpr int kAcross = Group::kPatch / 8;  // units of a channel
  static constexpr int kUnits = kAcross * Spec::kChunk;
  static constexpr int kEach = (kUnits + kThreads - 1) / kThreads;
  static constexpr int kAtOnce =
      kEach < Spec::kOctetsAtOnce ? kEach : Spec::kOctetsAtOnce;

 public:
  // A unit between memory and a stage: values that are scaled first, or pairs
  // of what is stored.
  using Number = typename OctetNumber<Spec::kScales>::Type;
  static constexpr int kNumbers = Spec::kScales ? 8 : 4;
  using Numbers = Number[kNumbers];
  using Values = Numbers[kAtOnce];

  // The first of a unit's pixels, and its channel of the chunk.
  struct Place {
    int position, channel;
  };
  static __device__ int ImageOf(const Place&) { return 0; }
  // From the first unit of the patch.
  static __device__ int UnitOf(const Place& place) {
    return Group::LineUnitOf(place.channel, place.position / 8);
  }
  // Into a patch of numbers as they are stored.
  static __device__ void Store(const Numbers& numbers, uint4* patch,
                               const Place& place) {
    patch[UnitOf(place)] =
        make_uint4(numbers[0], numbers[1], numbers[2], numbers[3]);
  }

  // How many batches each thread has of a chunk; nothing is carried.
  static __device__ int CountOf(int, bool) {
    return (kEach + kAtOnce - 1) / kAtOnce;
  }

  // Whether units are single accesses: the tensor may begin between them.
  static __device__ bool AreAligned(const Tensors& t) {
    return reinterpret_cast<unsigned long long>(t.input) % 16 == 0;
  }

  // The thread's units of a batch; zeros outside the input. kAligned: see
  // AreAligned.
  template <bool kAligned>
  static __device__ void Read(const Tensors& t, const ConvBlock<Spec>& block,
                              int tile, int chunk, int thread, int batch, bool,
                              Values& values) {
    constexpr Index kPlane =
        static_cast<Index>(Spec::Input::kH) * Spec::Input::kW;
    constexpr bool kWhole = ConvTile<Spec>::kInputs % Spec::kChunk == 0;
    const int top = Positions::TopOf(block, tile);
    const int left = Positions::LeftOf(block);
    const int channels = ConvTile<Spec>::kInputs - chunk * Spec::kChunk;
    const auto* const first = t.input + ConvOctets<Spec>::FirstOf(block, chunk);
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const int i = NumberOf(thread, batch, n);
      const Place place = PlaceOf(i);
      const int row = Positions::RowOf(top, place.position);
      const int column = Positions::ColumnOf(left, place.position);
      const bool read = (i < kUnits) & Positions::IsRow(row) &
                        (kWhole || place.channel < channels);
      ReadUnit<kAligned>(
          first + (place.channel * kPlane + row * Spec::Input::kW + column),
          read ? Spec::Input::kW - column : 0, values[n]);
    }
  }

  // Calls visit(numbers, place) for each unit that there is.
  template <typename Visit>
  static __device__ void ForEach(int thread, int batch, bool, Values& values,
                                 const Visit& visit) {
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const int i = NumberOf(thread, batch, n);
      if (i >= kUnits) break;
      visit(values[n], PlaceOf(i));
    }
  }

 private:
  static_assert(Spec::kImages == 1 && Group::kPatch % 8 == 0 &&
                    Spec::kRowPitch % 8 == 0,
                "Eight positions lie in one row.");

  static __device__ int NumberOf(int thread, int batch, int n) {
    return thread + (batch * kAtOnce + n) * kThreads;
  }
  static __device__ Place PlaceOf(int number) {
    return {number % kAcross * 8, number / kAcross};
  }

  // Of eight pixels those in front of the `columns`-th, of which there may be
  // none or more; zeros instead of others.
  template <bool kAligned, typename T>
  static __device__ void ReadUnit(const T* from, int columns,
                                  Numbers& numbers) {
    if constexpr (kAligned) {
      constexpr int kAccesses = kNumbers / 4;  // of 16 bytes
      constexpr int kPixels = 8 / kAccesses;
#pragma unroll
      for (int k = 0; k < kAccesses; ++k) {
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (k * kPixels < columns) {
          bits = __ldg(reinterpret_cast<const uint4*>(from) + k);
        }
        Take(bits.x, &numbers[4 * k]);
        Take(bits.y, &numbers[4 * k + 1]);
        Take(bits.z, &numbers[4 * k + 2]);
        Take(bits.w, &numbers[4 * k + 3]);
      }
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const Number number =
            k < columns ? OctetNumber<Spec::kScales>::Of(from[k]) : Number{};
        if constexpr (Spec::kScales) {
          numbers[k] = number;
        } else {
          numbers[k / 2] = k % 2 == 0 ? number : numbers[k / 2] | number << 16;
        }
      }
    }
  }
  static __device__ void Take(unsigned bits, float* number) {
    *number = __uint_as_float(bits);
  }
  static __device__ void Take(unsigned bits, unsigned* number) {
    *number = bits;
  }
};

// What producers take chunks as.
template <typename Spec, bool kTakesLines = Spec::kTakesLines>
struct BatchesOf {
  using Type = ConvBatches<Spec>;
};
template <typename Spec>
struct BatchesOf<Spec, true> {
  using Type = ConvLines<Spec>;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_LINES_CUH_
