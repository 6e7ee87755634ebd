// The warpgroup that brings chunks of the input where the filter has one tap
// and operands are multiplied as they are stored (Spec::kTakesLines): eight
// neighbouring pixels of a channel are a unit of 16 bytes, which goes from
// memory to a stage as it lies, behind the threads' backs. The tensor cores
// then read pixels side by side instead of channels (wgmma.cuh).
//
// So nothing is on its way in registers, and as many chunks are as there are
// stages but one.
#ifndef KILN_KERNEL_SOURCES_CONV_LINES_CUH_
#define KILN_KERNEL_SOURCES_CONV_LINES_CUH_

#include "async_copy.cuh"
#include "conv_octets.cuh"
#include "conv_phase_weights.cuh"
#include "conv_positions.cuh"
#include "conv_stages.cuh"

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
        block_(number),
        tiles_(Spec::kTilesPerBlock == 1 ? 1 : block_.tiles()),
        is_aligned_(reinterpret_cast<unsigned long long>(t.input) % 16 == 0) {}

  __device__ void Run() {
    const PhaseWeights<Spec> weights(reinterpret_cast<const uint4*>(t_.packed),
                                     block_);
    if (Spec::kKeepsWeights && thread_ == 0) weights.Keep(stages_);
    if (thread_ == 0) LeaveNotes();
    const int images = Spec::kTeams > 0 ? block_.rounds() : 1;
    const int chunks = images * tiles_ * Tile::kChunks;
    StageCursor<Spec::kStages> newest{0};
    StageCursor<Spec::kStages> oldest{0};  // that has yet to be handed over
#pragma unroll 1
    for (int chunk = 0; chunk < chunks + kAhead; ++chunk) {
      if (chunk < chunks) {
        ptx::Wait(stages_.empty(newest.stage), newest.round() ^ 1);
        if (!Spec::kKeepsWeights && thread_ == 0) {
          weights.Send(chunk % Tile::kChunks, newest.stage, stages_);
        }
        BeginCopies(chunk, stages_.pixels(newest.stage));
        newest.Use();
        newest.Advance(1);
      }
      CommitCopies();  // of no chunk, behind the last
      if (chunk < kAhead) continue;
      WaitForCopies<kAhead>();
      PublishShared();
      ptx::Arrive(stages_.full(oldest.stage));
      oldest.Advance(1);
    }
  }

 private:
  static constexpr int kThreads = ConvStages<Spec>::kProducerThreads;
  static constexpr int kAhead = Spec::kStages - 1;
  static constexpr int kAcross = Group::kPatch / 8;  // units of a channel
  static constexpr int kUnits = kAcross * Spec::kChunk;
  static_assert(!Spec::kScales && Spec::kImages == 1 && Spec::kProducers == 1);
  static_assert(Spec::kRowPitch % 8 == 0 && Spec::Input::kW % 8 == 0,
                "A unit lies in one row.");

  // The same of all chunks: nothing is scaled.
  __device__ void LeaveNotes() const {
#pragma unroll 1
    for (int stage = 0; stage < Spec::kStages; ++stage) {
      auto* const note = stages_.note(stage);
      note->factors[0] = 1.0f;
      note->is_again = false;
      note->only_large = false;
    }
  }

  // The thread's units of a chunk, counted over all tiles of the block and
  // images of its team; zeros outside the input.
  __device__ void BeginCopies(int chunk_of_block, uint4* patch) const {
    constexpr Index kPlane =
        static_cast<Index>(Spec::Input::kH) * Spec::Input::kW;
    constexpr bool kWhole = Tile::kInputs % Spec::kChunk == 0;
    const int number = chunk_of_block / Tile::kChunks;
    const int chunk = chunk_of_block % Tile::kChunks;
    const ConvBlock<Spec> block =
        Spec::kTeams > 0 ? block_.InRound(number / tiles_) : block_;
    const int tile = Spec::kTeams > 0 ? number % tiles_ : number;
    const int top = Positions::TopOf(block, tile);
    const int left = Positions::LeftOf(block);
    const Index first = ConvOctets<Spec>::FirstOf(block, chunk);
    const int channels = Tile::kInputs - chunk * Spec::kChunk;
#pragma unroll 4
    for (int i = thread_; i < kUnits; i += kThreads) {
      const int channel = i / kAcross;
      const int position = i % kAcross * 8;
      const int row = Positions::RowOf(top, position);
      const int column = Positions::ColumnOf(left, position);
      uint4* const unit = patch + Group::LineUnitOf(channel, position / 8);
      if (Positions::IsRow(row) && Positions::IsColumn(column) &&
          (kWhole || channel < channels)) {
        CopyUnit(t_.input + (first + channel * kPlane + row * Spec::Input::kW +
                             column),
                 unit);
      } else {
        *unit = make_uint4(0, 0, 0, 0);
      }
    }
  }

  template <typename T>
  __device__ void CopyUnit(const T* from, uint4* unit) const {
    BeginCopy<8>(from, 0, is_aligned_, reinterpret_cast<T*>(unit));
  }

  const typename Spec::Tensors& t_;
  const ConvStages<Spec>& stages_;
  const ConvBlock<Spec> block_;
  const int tiles_;  // of a strip
  const bool is_aligned_;
  const int thread_ = threadIdx.x - Tile::kThreads;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_LINES_CUH_
