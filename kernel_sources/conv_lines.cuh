// The warpgroup that brings chunks of the input where the filter, or each phase
// of it, has one tap and halves lie in memory (Spec::kTakesLines), as the input
// itself or laid down before (Spec::kLaysLines, laid_lines.cuh): eight
// neighbouring pixels of a channel are a unit of 16 bytes, which goes from
// memory to a stage as it lies, behind the threads' backs; in halves, where
// rows begin between units. The tensor cores then read pixels side by side
// instead of channels (wgmma.cuh).
//
// So nothing is on its way in registers, and as many chunks may be as there are
// stages: threads wait for free ones alone. Who multiplies makes visible to the
// tensor cores what has arrived (AcquireShared); a fence here would wait for
// all that is on its way.
#ifndef KILN_KERNEL_SOURCES_CONV_LINES_CUH_
#define KILN_KERNEL_SOURCES_CONV_LINES_CUH_

#include "async_copy.cuh"
#include "conv_block_tiles.cuh"
#include "conv_octets.cuh"
#include "conv_phase_weights.cuh"
#include "conv_positions.cuh"
#include "conv_stages.cuh"
#include "laid_lines.cuh"
#include "ptx_bulk.cuh"

namespace kiln {

template <typename Spec>
class ConvLines {
 public:
  using Tile = ConvTile<Spec>;
  using Group = GroupTile<Spec>;
  using Positions = PatchPositions<Spec>;
  using Index = typename Spec::Index;

  __device__ ConvLines(const typename Spec::Tensors& t,
                       const ConvStages<Spec>& stages, unsigned number)
      : t_(t),
        stages_(stages),
        tiles_(number),
        is_aligned_(Spec::kLaysLines ||
                    reinterpret_cast<unsigned long long>(t.input) % kBytes ==
                        0) {}

  __device__ void Run() {
    const PhaseWeights<Spec> weights(reinterpret_cast<const uint4*>(t_.packed),
                                     tiles_.block());
    if (thread_ == 0) stages_.LeaveNotes();
    if (Spec::kKeepsWeights && thread_ == 0) weights.Keep(stages_);
    const int chunks = tiles_.Count() * Tile::kChunks;
    StageCursor<Spec::kStages> cursor{0};
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int stage = cursor.stage;
      ptx::Wait(stages_.empty(stage), cursor.round() ^ 1);
      if (!Spec::kKeepsWeights && thread_ == 0) {
        weights.Send(chunk % Tile::kChunks, stage, stages_);
      }
      if (is_aligned_) {
        BringChunk<true>(chunk, stages_.pixels(stage));
        ptx::ArriveWithCopies(stages_.full(stage));
      } else {
        BringChunk<false>(chunk, stages_.pixels(stage));
        ptx::Arrive(stages_.full(stage));
      }
      cursor.Use();
      cursor.Advance(1);
    }
  }

 private:
  static constexpr int kThreads = ConvStages<Spec>::kProducerThreads;
  // What is copied at once: so many pixels, of those that rows are made of.
  static constexpr int kPixels = Spec::kLinePitch % 8 == 0 ? 8 : 4;
  static constexpr int kBytes = 2 * kPixels;
  // Of a channel: in all positions of the patch.
  static constexpr int kAcross = Group::kPlane / kPixels;
  // Lanes side by side, and channels that all threads have at once.
  static constexpr int kLanes = kAcross <= 8 ? 8 : kAcross <= 16 ? 16 : 32;
  static constexpr int kSets = kThreads / kLanes;
  static constexpr bool kWhole = Tile::kInputs % Spec::kChunk == 0;
  static constexpr Index kPlane =
      static_cast<Index>(Spec::Input::kH) * Spec::kLinePitch;
  static_assert(kSets % 4 == 0 && Spec::kChunk % kSets == 0);
  static_assert(Spec::kLaysLines || (!Spec::kScales && Spec::kInputParts == 1));
  static_assert(Spec::kImages == 1 && Spec::kProducers == 1 &&
                Spec::kRowParts == 1 && Spec::kTeams == 0);
  static_assert(Spec::kRowPitch % 8 == 0 && Spec::kLinePitch % kPixels == 0,
                "What is copied at once lies in one row.");

  // Sends for the thread's units of a chunk, counted over all tiles of the
  // block, or brings them.
  template <bool kAligned>
  __device__ void BringChunk(int chunk_of_block, uint4* patch) const {
    const int chunk = chunk_of_block % Tile::kChunks;
    const int number = chunk_of_block / Tile::kChunks;
    const ConvBlock<Spec> block = tiles_.BlockOf(number);
    const int top = Positions::TopOf(block, tiles_.TileOf(number), 0);
    const int left = Positions::LeftOf(block);
    const Index first =
        (static_cast<Index>(block.n) * Spec::Input::kC +
         block.group * Tile::kInputs + block.FirstOfChunk(chunk) + set_) *
        kPlane;
    const int channels = block.ChannelsFrom(chunk) - set_;
#pragma unroll
    for (int pass = 0; pass < kAcross; pass += kLanes) {
      const int piece = thread_ % kLanes + pass;
      if (piece >= kAcross) break;
      const int row = Positions::RowOf(top, piece * kPixels);
      const int column = Positions::ColumnOf(left, piece * kPixels);
      const bool inside = Positions::IsRow(row) && Positions::IsColumn(column);
      const auto* const from =
          t_.input + (first + (row * Spec::kLinePitch + column));
#pragma unroll
      for (int part = 0; part < Spec::kInputParts; ++part) {
        BringColumn<kAligned>(from + PartOf(part), piece, inside ? channels : 0,
                              patch + part * Group::kPart);
      }
    }
  }

  // Where a part of the numbers lies behind the first.
  static __device__ Index PartOf(int part) {
    if constexpr (Spec::kLaysLines) return part * LaidLines<Spec>::kPart;
    return 0;
  }

  // Of every kSets-th channel from the thread's first on the pixels at `from`;
  // zeros behind so many channels.
  template <bool kAligned, typename T>
  __device__ void BringColumn(const T* from, int piece, int channels,
                              uint4* patch) const {
    const int eight = piece * kPixels / 8;
    uint4* const units = patch + Group::LineUnitOf(set_, eight);
    // As LineUnitOf has them: of sets of four, every other changes places.
    const int to_others = ((eight ^ set_) & 4) == 0 ? 4 : -4;
#pragma unroll kAligned ? 32 : 1
    for (int channel = 0; channel < Spec::kChunk; channel += kSets) {
      uint4* const unit =
          units + 8 * channel + (channel % 8 == 0 ? 0 : to_others);
      const bool read = kWhole ? channels > 0 : channel < channels;
      BringPixels<kAligned>(from + channel * kPlane, piece, read, unit);
    }
  }

  // To the unit that a piece lies in.
  template <bool kAligned, typename T>
  __device__ void BringPixels(const T* from, int piece, bool read,
                              uint4* unit) const {
    auto* const place =
        reinterpret_cast<uint2*>(unit) + (kPixels == 8 ? 0 : piece % 2);
    if constexpr (kAligned) {
      ptx::CopyAsync<kBytes>(place, read ? from : t_.input, read);
    } else if constexpr (kPixels == 8) {
      *unit = GatherEight(from, read);
    } else {
      *place = GatherFour(from, read);
    }
  }

  const typename Spec::Tensors& t_;
  const ConvStages<Spec>& stages_;
  const BlockTiles<Spec> tiles_;
  const bool is_aligned_;
  const int thread_ = threadIdx.x - Tile::kThreads;
  const int set_ = thread_ / kLanes;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_LINES_CUH_
