// How a producer's threads share what a chunk brings from memory: each has it
// in batches, so many slices of so many positions, which are on their way
// before the first is used. Two positions count as one where they are taken
// together, and pairs of columns where these are (conv_column_pairs.cuh).
#ifndef KILN_KERNEL_SOURCES_CONV_BATCHES_CUH_
#define KILN_KERNEL_SOURCES_CONV_BATCHES_CUH_

#include "conv_carry.cuh"
#include "conv_column_pairs.cuh"
#include "conv_stages.cuh"
#include "patch_share.cuh"

namespace kiln {

template <typename Spec>
class ConvBatches {
  using Group = GroupTile<Spec>;
  using Carry = ConvCarry<Spec>;
  static constexpr int kTogether = Spec::kTakesPairs ? 2 : 1;
  static_assert(Group::kPatch % kTogether == 0 &&
                    Spec::kRowPitch % kTogether == 0,
                "Two positions lie in one row.");
  static_assert(!Spec::kTakesPairs || Spec::kCarriedRows == 0);
  static constexpr int kAll = Spec::kPairsColumns ? ColumnPair<Spec>::kCount
                                                  : Group::kPatch / kTogether;
  static constexpr int kFresh =
      Spec::kPairsColumns ? kAll : Carry::kFresh / kTogether;
  // Of what most tiles bring; a whole patch has more of the same.
  using Share = PatchShare<kFresh, ConvStages<Spec>::kProducerThreads, 1,
                           Group::kOctets, kAll>;

  // A block of few tiles waits for its first, which carries nothing, for a
  // larger part of its time (measured: docs/kernel-notes).
  static constexpr int kFewTiles = 6;
  static constexpr int kUsual =
      Spec::kTilesPerBlock < kFewTiles ? kAll : kFresh;
  static constexpr int kSteps = (kUsual + Share::kStep - 1) / Share::kStep;

 public:
  // Octets of a position in a batch, and its positions, kStep apart.
  static constexpr int kSlices =
      Share::kEach < Spec::kOctetsAtOnce ? Share::kEach : Spec::kOctetsAtOnce;
  static constexpr int kAtOnce = kSteps < Spec::kOctetsAtOnce / kSlices
                                     ? kSteps
                                     : Spec::kOctetsAtOnce / kSlices;
  static constexpr int kStep = Share::kStep;

  // How many batches the warp of `thread` has of a chunk.
  static __device__ int CountOf(int thread, bool carries) {
    constexpr int kOfAll = (kAll + kBatchStep - 1) / kBatchStep;
    const int left = PositionsOf(carries) - Share::First(thread) / 32 * 32;
    const int own = (left + kBatchStep - 1) / kBatchStep;
    return (kOfAll == 1 ? 1 : max(own, 1)) * kOfPositions;
  }

  // How many come from memory, and which is the i-th of them, or the first of
  // two.
  static __device__ int PositionsOf(bool carries) {
    return Spec::kPairsColumns ? kAll : Carry::CountOf(carries) / kTogether;
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

 private:
  static constexpr int kBatchStep = kStep * kAtOnce;
  // Batches of the same positions.
  static constexpr int kOfPositions = (Share::kEach + kSlices - 1) / kSlices;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_BATCHES_CUH_
