// How a producer's threads share the octets (conv_octets.cuh) that a chunk
// brings from memory: each has them in batches, so many slices of so many
// positions, which are on their way before the first is used. Two positions
// count as one where they are taken together.
#ifndef KILN_KERNEL_SOURCES_CONV_BATCHES_CUH_
#define KILN_KERNEL_SOURCES_CONV_BATCHES_CUH_

#include "conv_carry.cuh"
#include "conv_halves.cuh"
#include "conv_octets.cuh"
#include "conv_positions.cuh"
#include "conv_stages.cuh"
#include "patch_share.cuh"

namespace kiln {

template <typename Spec>
class ConvBatches {
  using Group = GroupTile<Spec>;
  using Carry = ConvCarry<Spec>;
  using Positions = PatchPositions<Spec>;
  using Octets = ConvOctets<Spec>;
  using Tensors = typename Spec::Tensors;
  using Index = typename Spec::Index;
  static constexpr int kTogether = Spec::kTakesPairs ? 2 : 1;
  static_assert(Group::kPatch % kTogether == 0 &&
                    Spec::kRowPitch % kTogether == 0,
                "Two positions lie in one row.");
  static_assert(!Spec::kTakesPairs || Spec::kCarriedRows == 0);
  // Of what most tiles bring; a whole patch has more of the same.
  using Share =
      PatchShare<Carry::kFresh / kTogether, ConvStages<Spec>::kProducerThreads,
                 1, Group::kOctets, Group::kPatch / kTogether>;

  // A block of few tiles waits for its first, which carries nothing, for a
  // larger part of its time (measured: docs/kernel-notes.md).
  static constexpr int kFewTiles = 6;
  static constexpr int kUsual =
      Spec::kTilesPerBlock < kFewTiles ? Group::kPatch : Carry::kFresh;
  static constexpr int kSteps =
      (kUsual / kTogether + Share::kStep - 1) / Share::kStep;

  // Octets of a position in a batch, and its positions, kStep apart.
  static constexpr int kSlices =
      Share::kEach < Spec::kOctetsAtOnce ? Share::kEach : Spec::kOctetsAtOnce;
  static constexpr int kAtOnce = kSteps < Spec::kOctetsAtOnce / kSlices
                                     ? kSteps
                                     : Spec::kOctetsAtOnce / kSlices;
  static constexpr int kStep = Share::kStep;

 public:
  using Numbers = typename Octets::Octet;
  using Values = Numbers[kAtOnce * kSlices];

  // Of an octet: the position, or the first of two, and which of it.
  struct Place {
    int position, octet;
  };
  static __device__ int ImageOf(const Place& place) {
    return Positions::ImageOf(place.position);
  }
  // From the first unit of the patch to the octet's.
  static __device__ int UnitOf(const Place& place) {
    return Group::UnitOf(place.octet, place.position);
  }
  // Into a patch of numbers as they are stored.
  static __device__ void Store(const Numbers& numbers, uint4* patch,
                               const Place& place) {
    patch[UnitOf(place)] = PackHalvesOf<false>(numbers);
    if constexpr (Spec::kTakesPairs) {
      patch[UnitOf({place.position + 1, place.octet})] =
          PackHalvesOf<true>(numbers);
    }
  }

  // How many batches the warp of `thread` has of a chunk.
  static __device__ int CountOf(int thread, bool carries) {
    constexpr int kOfAll =
        (Group::kPatch / kTogether + kBatchStep - 1) / kBatchStep;
    const int left = PositionsOf(carries) - Share::First(thread) / 32 * 32;
    const int own = (left + kBatchStep - 1) / kBatchStep;
    return (kOfAll == 1 ? 1 : max(own, 1)) * kOfPositions;
  }

  static __device__ bool AreAligned(const Tensors& t) {
    return !Spec::kTakesPairs || Octets::IsAligned(t);
  }

  // The thread's octets of a batch; zeros outside the input. kAligned: see
  // AreAligned.
  template <bool kAligned>
  static __device__ void Read(const Tensors& t, const ConvBlock<Spec>& block,
                              int tile, int chunk, int thread, int batch,
                              bool carries, Values& values) {
    const int top = Positions::TopOf(block, tile);
    const int left = Positions::LeftOf(block);
    const int channels = ConvTile<Spec>::kInputs - chunk * Spec::kChunk;
    const Index first = Octets::FirstOf(block, chunk);
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const int i = FirstOf(thread, batch) + n * kStep;
      const int position = PositionOf(i, carries);
      const int row = Positions::RowOf(top, position);
      const int column = Positions::ColumnOf(left, position);
      // No branch keeps the loads of positions apart.
      const bool has_row = (i < PositionsOf(carries)) &
                           Positions::IsOfImage(position) &
                           Positions::IsRow(row);
      const Index from = first + Positions::FirstOfImage(position) +
                         row * Spec::Input::kW + column;
#pragma unroll
      for (int k = 0; k < kSlices; ++k) {
        const int octet = OctetOf(thread, batch, k);
        const bool has_octet = has_row & HasOctet(octet);
        Octets::template Read<kAligned>(t, from, column, octet,
                                        has_octet ? channels : 0,
                                        values[n * kSlices + k]);
      }
    }
  }

  // Calls visit(numbers, place) for each octet that there is.
  template <typename Visit>
  static __device__ void ForEach(int thread, int batch, bool carries,
                                 Values& values, const Visit& visit) {
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const int i = FirstOf(thread, batch) + n * kStep;
      if (i >= PositionsOf(carries)) break;
      const int position = PositionOf(i, carries);
#pragma unroll
      for (int k = 0; k < kSlices; ++k) {
        const int octet = OctetOf(thread, batch, k);
        if (!HasOctet(octet)) continue;
        visit(values[n * kSlices + k], Place{position, octet});
      }
    }
  }

 private:
  static constexpr int kBatchStep = kStep * kAtOnce;
  // Batches of the same positions.
  static constexpr int kOfPositions = (Share::kEach + kSlices - 1) / kSlices;

  // How many come from memory, and which is the i-th of them, or the first of
  // two.
  static __device__ int PositionsOf(bool carries) {
    return Carry::CountOf(carries) / kTogether;
  }
  static __device__ int PositionOf(int i, bool carries) {
    return Carry::PositionOf(i * kTogether, carries);
  }

  // The first position of a batch, counted among those from memory.
  static __device__ int FirstOf(int thread, int batch) {
    return Share::First(thread) + batch / kOfPositions * kBatchStep;
  }
  // The octet of slice `k` of a batch, and whether there is one.
  static __device__ int OctetOf(int thread, int batch, int k) {
    return Share::Slice(thread, batch % kOfPositions * kSlices + k);
  }
  static __device__ bool HasOctet(int octet) {
    return Share::kEach % kSlices == 0 ? Share::HasSlice(octet)
                                       : octet < Group::kOctets;
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_BATCHES_CUH_
