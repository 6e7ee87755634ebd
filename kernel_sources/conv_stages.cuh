// Shared memory of conv_wgmma.cu, and the barriers by which its producer hands
// chunks over.
#ifndef KILN_KERNEL_SOURCES_CONV_STAGES_CUH_
#define KILN_KERNEL_SOURCES_CONV_STAGES_CUH_

#include "conv_tile.cuh"
#include "ptx_bulk.cuh"
#include "stage_cursor.cuh"
#include "wgmma.cuh"

namespace kiln {

// Sizes in units of 16 bytes: eight 16-bit numbers of k, of one pixel or one
// output channel.
template <typename Spec>
struct GroupTile {
  using Tile = ConvTile<Spec>;
  static constexpr int kTaps = Spec::kTapsH * Spec::kTapsW;
  static constexpr int kOctets = Spec::kChunk / 8;
  // k16 steps through the pairs of octet and tap; the last may be half empty.
  static constexpr int kSteps = (kOctets * kTaps + 1) / 2;
  static constexpr bool kHasEmptyHalf = kOctets * kTaps % 2 != 0;

  // Pixels at distance kStride lie side by side, in a plane of their own.
  static constexpr int kPlane = Spec::kPlaneHeight * Spec::kRowPitch;
  static constexpr int kImagePatch = Spec::kPlanesH * Spec::kPlanesW * kPlane;
  // Of all images, as they lie.
  static constexpr int kPatch =
      Spec::kImages == 1 ? kImagePatch : Spec::kImages * Spec::kImagePositions;
  // Where products take sixteen channels of a pixel, two octets are swizzled
  // (wgmma.cuh); else an octet's pixels are contiguous.
  static constexpr int kOctetsOfRow = kOctets % 2 == 0 ? 2 : 1;
  static constexpr int kPart = kOctets * Spec::kPositions;
  static constexpr int kPixels = Spec::kInputParts * kPart;
  static constexpr int kWeightPart = kSteps * 2 * Spec::kBlockChannels;
  static constexpr int kPhaseWeights = Spec::kWeightParts * kWeightPart;
  static constexpr int kWeights = Tile::kTilePhases * kPhaseWeights;

  // Between channels at the distance of sixteen, of the same pixels.
  static constexpr int kSixteen =
      Spec::kTakesLines ? 16 * 8 : 2 * Spec::kPositions;
  // From the first of a part of the patch to where a run of pixels begins.
  static __device__ constexpr int UnitsTo(int position) {
    return Spec::kTakesLines ? position / 8 * Spec::kChunk
                             : kOctetsOfRow * position;
  }
  // Of lines (conv_lines.cuh): of 64 pixels those of a channel are 128 bytes,
  // swizzled; channels follow each other. `eight` counts the pixels.
  static __device__ int LineUnitOf(int channel, int eight) {
    return eight / 8 * 8 * Spec::kChunk + 8 * channel +
           (eight % 8 ^ channel % 8);
  }

  // Of an octet of a position, in a part of the patch.
  static __device__ int UnitOf(int octet, int position) {
    if constexpr (kOctetsOfRow == 1) {
      return octet * Spec::kPositions + position;
    } else {
      return octet / 2 * 2 * Spec::kPositions +
             SwizzledUnit(position, octet % 2);
    }
  }

  // The same of another octet, from that of octet 0.
  static __device__ int UnitOfOctet(int first, int octet) {
    return kOctetsOfRow == 1
               ? first + octet * Spec::kPositions
               : (first ^ octet % 2) + octet / 2 * 2 * Spec::kPositions;
  }

  static constexpr int kStage = kPixels + (Spec::kKeepsWeights ? 0 : kWeights);
  static constexpr int kKept =
      Spec::kKeepsWeights ? Tile::kChunks * kWeights : 0;
};

// What the producer says of a stage.
template <int kImages>
struct StageNote {
  // Undo the scales of the input, image by image; 0 where nothing is scaled and
  // sums are brought from scale to scale (ConvStages::kRescales).
  float factors[kImages];
  int is_again;    // the same stage follows, with the rest of the chunk
  int only_large;  // just the product of the large parts

  // What concerns one image; flags are known to be the same in all lanes of a
  // warp. All read, and all say when the stage is free: where one lane alone
  // did either, racecheck took the others' reads for races, or products began
  // later (docs/kernel-notes).
  __device__ StageNote<1> Of(int image) const {
    return {{factors[image]},
            __any_sync(~0u, is_again),
            __any_sync(~0u, only_large)};
  }
};

// A producer waits for `empty`, fills, arrives at `full`; every thread that
// multiplies waits for `full`, reads, arrives at `empty`. Chunks take stages in
// turn, and producers take stages in turn.
//
// Warpgroups multiply in turns, so that one multiplies while the others go on
// with their sums: without turns they fall into step, and tensor cores and
// everything else are used one after the other. Many that take turns bunch up
// behind one that is late, as buses do, and then do the same at the same time.
// In front of a reduction or softmax over channels a turn is therefore passed
// only when a share of the values is computed (Spec::kTurnHeldFor).
template <typename Spec>
class ConvStages {
 public:
  using Group = GroupTile<Spec>;
  using Note = StageNote<Spec::kImages>;
  // Some warps of a producer may have something else to do (conv_finish.cuh).
  static constexpr int kProducerThreads =
      Spec::kProducerGroups / Spec::kProducers * 128 - Spec::kFinishWarps * 32;
  static_assert(Spec::kFinishWarps == 0 || Spec::kProducers == 1);
  static_assert(Spec::kStages % Spec::kProducers == 0,
                "A stage always has the same producer.");
  // Whether stages have scales of their own.
  static constexpr bool kScalesStages = Spec::kScales && !Spec::kLaysLines;
  // Whether the tensor cores add chunks of different scales.
  static constexpr bool kRescales = kScalesStages && Group::Tile::kChunks > 1 &&
                                    Spec::kInputParts == 1 &&
                                    Spec::kWeightParts == 1;
  static constexpr int kKept = Spec::kStages * Group::kStage;
  static constexpr int kZeros = kKept + Group::kKept;
  static constexpr int kNotes =
      kZeros + (Group::kHasEmptyHalf ? Spec::kZeroUnits : 0);
  static constexpr int kNoteUnits = (sizeof(Note) + 15) / 16;
  static constexpr int kMagnitudes = kNotes + Spec::kStages * kNoteUnits;
  static constexpr int kBarriers =
      kMagnitudes + 2 * Spec::kImages * Spec::kProducerGroups;
  static constexpr int kOtherBarriers =
      1 + Spec::kWarpgroups + (Spec::kTeams > 0 ? 2 : 0);
  static constexpr int kSumScales =
      kBarriers + Spec::kStages + (kOtherBarriers + 1) / 2;
  static constexpr int kPlaces = kSumScales + Spec::kScaleUnits;
  static constexpr int kChannels = kPlaces + Spec::kPlaceUnits;
  static constexpr int kCopies = kChannels + Spec::kChannelUnits;
  static constexpr int kScratch = kCopies + Spec::kCopyUnits;
  static_assert(kScratch * 16 + Spec::kScratchWords * 4 == Spec::kSharedBytes,
                "The launch asks for this much.");

  __device__ explicit ConvStages(uint4* units) : units_(units) {}

  // By all threads of the block, which must meet before the first use.
  __device__ void Init() const {
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < Spec::kStages; ++stage) {
        ptx::InitBarrier(full(stage),
                         kProducerThreads + (Spec::kKeepsWeights ? 0 : 1));
        ptx::InitBarrier(empty(stage), ConvTile<Spec>::kThreads);
      }
      ptx::InitBarrier(kept_weights_full(), 1);
      for (int group = 0; group < Spec::kWarpgroups; ++group) {
        ptx::InitBarrier(turn(group), 4);
      }
      if constexpr (Spec::kTeams > 0) {
        ptx::InitBarrier(states_left(), ConvTile<Spec>::kThreads);
        ptx::InitBarrier(states_known(), ConvTile<Spec>::kThreads);
      }
      ptx::FenceBarrierInit();
    }
    if constexpr (Group::kHasEmptyHalf) {
      for (int i = threadIdx.x; i < Spec::kZeroUnits; i += blockDim.x) {
        units_[kZeros + i] = make_uint4(0, 0, 0, 0);
      }
    }
  }

  __device__ uint4* pixels(int stage) const {
    return units_ + stage * Group::kStage;
  }
  __device__ uint4* weights(int stage, int chunk) const {
    return Spec::kKeepsWeights ? units_ + kKept + chunk * Group::kWeights
                               : pixels(stage) + Group::kPixels;
  }
  __device__ const uint4* zeros() const { return units_ + kZeros; }
  __device__ Note* note(int stage) const {
    return reinterpret_cast<Note*>(units_ + kNotes + stage * kNoteUnits);
  }
  // Two sets, for each image of the warps of one producer.
  __device__ unsigned* magnitudes(int producer) const {
    return reinterpret_cast<unsigned*>(units_ + kMagnitudes) +
           kProducerThreads / 16 * Spec::kImages * producer;
  }
  // By one thread: the same of all chunks, where nothing is scaled. Who sends
  // for weights says so by that.
  __device__ void LeaveNotes() const {
#pragma unroll 1
    for (int stage = 0; stage < Spec::kStages; ++stage) {
#pragma unroll
      for (float& factor : note(stage)->factors) factor = 1.0f;
      note(stage)->is_again = false;
      note(stage)->only_large = false;
    }
  }
  __device__ ptx::Barrier* full(int stage) const {
    return barriers() + 2 * stage;
  }
  __device__ ptx::Barrier* empty(int stage) const {
    return barriers() + 2 * stage + 1;
  }
  __device__ ptx::Barrier* kept_weights_full() const {
    return barriers() + 2 * Spec::kStages;
  }
  // At which the four warps arrive that had their turn before `group`.
  __device__ ptx::Barrier* turn(int group) const {
    return barriers() + 2 * Spec::kStages + 1 + group;
  }
  // Where there are teams: at which all that multiply arrive with the states of
  // their tile, and with those of their image (conv_held.cuh).
  __device__ ptx::Barrier* states_left() const {
    return barriers() + 2 * Spec::kStages + 1 + Spec::kWarpgroups;
  }
  __device__ ptx::Barrier* states_known() const { return states_left() + 1; }
  // Of a warpgroup's channels, where pixels are the rows of its product.
  __device__ float* sum_scales(int group) const {
    return reinterpret_cast<float*>(units_ + kSumScales) +
           Spec::kTilesN * 8 * group;
  }
  // Of warps that turn lines (conv_turned_lines.cuh).
  __device__ uint4* places() const { return units_ + kPlaces; }
  __device__ void* channels() const { return units_ + kChannels; }
  // Of what is copied behind producers' backs (conv_copies.cuh).
  __device__ float* copies() const {
    return reinterpret_cast<float*>(units_ + kCopies);
  }
  __device__ float* scratch() const {
    return reinterpret_cast<float*>(units_ + kScratch);
  }

 private:
  __device__ ptx::Barrier* barriers() const {
    return reinterpret_cast<ptx::Barrier*>(units_ + kBarriers);
  }

  uint4* const units_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_STAGES_CUH_
