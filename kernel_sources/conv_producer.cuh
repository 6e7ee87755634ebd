// Longer than 400 lines because one class has all states of a chunk.
// The warpgroups of conv_wgmma.cu that bring chunks of the input from memory to
// shared memory: eight channels of a pixel become one unit of 16 bytes, for
// each part, scaled and rounded (conv_octets.cuh, conv_halves.cuh). Weights,
// packed before, arrive by bulk copies.
//
// Producers take chunks in turn, or all share each. Where they load ahead, a
// chunk is handed over while the loads of the next are on their way; where they
// copy ahead (conv_copies.cuh), whole batches of later chunks are.
//
// Where Spec::kCarriedRows says so, all tiles but a block's first take what the
// tile above has from its stage (conv_carry.cuh), unless scales have changed
// since or numbers are not finite.
//
// Where Spec::kFetchesEarly, producers run before the kernels before have ended
// (dependent_launch.cuh), so they read no tensors but input and packed.
//
// A scale holds until a chunk does not suit it. A chunk with infinities or NaNs
// fills its stage twice: without them, and with them alone, which meet the
// large parts of the weights only; so they come out as in PyTorch.
#ifndef KILN_KERNEL_SOURCES_CONV_PRODUCER_CUH_
#define KILN_KERNEL_SOURCES_CONV_PRODUCER_CUH_

#include "conv_batches.cuh"
#include "conv_block_tiles.cuh"
#include "conv_carry.cuh"
#include "conv_column_pairs.cuh"
#include "conv_copies.cuh"
#include "conv_halves.cuh"
#include "conv_octets.cuh"
#include "conv_phase_weights.cuh"
#include "conv_positions.cuh"
#include "conv_stages.cuh"
#include "ptx_barriers.cuh"
#include "wgmma.cuh"

namespace kiln {

enum class Keep { kAll, kFinite, kNonFinite };

template <typename Spec>
class ConvProducer {
 public:
  using Tile = ConvTile<Spec>;
  using Group = GroupTile<Spec>;
  using Index = typename Spec::Index;

  __device__ ConvProducer(const typename Spec::Tensors& t,
                          const ConvStages<Spec>& stages, unsigned number)
      : t_(t), stages_(stages), number_(number), tiles_(number) {}

  __device__ void Run() {
    if (Spec::kKeepsWeights && producer_ == 0 && thread_ == 0) {
      Weights().Keep(stages_);
    }
    const int chunks = tiles_.Count() * Tile::kChunks;
    int chunk = producer_;
    int batch = 0;
    bool carries = false;  // whether it takes what the tile above has
    bool is_open = false;  // the chunk before has yet to be ended
    if constexpr (kCopies) copies_.Start(chunk);
#pragma unroll 1
    while (chunk < chunks || is_open) {
      if (batch == 0) carries = Carries(chunk);
      if constexpr (kAnnounces) {
        if (batch == 0 && chunk + Spec::kProducers < chunks) {
          Announce(chunk + Spec::kProducers);
        }
      }
      Values values;  // of nothing behind the last chunk
      if constexpr (kCopies) {
        copies_.Take(values);
      } else if (chunk < chunks) {
        Read(chunk, batch, carries, values);
      }
      if (is_open) {
        is_open = false;
        if (!End(&chunk) || chunk >= chunks) continue;
      }
      Begin(chunk % Tile::kChunks);
      if (carries && batch == 0) TakeCarried();
      if constexpr (kScales) {
        if (keep_ != Keep::kAll) Select(keep_ == Keep::kFinite, values);
      }
      Write(batch, carries, values);
      if constexpr (kCopies) copies_.Next();
      if (++batch < Batches::CountOf(thread_, carries)) continue;
      batch = 0;
      has_carried_ = carries;
      chunk += Spec::kProducers;
      if constexpr (kCopies) {  // who multiplies publishes what is written
        if (!End(&chunk)) copies_.Start(chunk);
        continue;
      }
      // Before more loads, for it waits for those that are on their way.
      PublishShared();
      if constexpr (Spec::kLoadsAhead) {
        is_open = true;
      } else {
        End(&chunk);
      }
    }
  }

 private:
  // Of a scale; the first suits numbers about 1. It is not set by a loop,
  // behind which the compiler writes more branches.
  struct Exponent {
    int value = 6;
  };

  // The largest magnitude of each image, as bits.
  struct Magnitudes {
    unsigned of[Spec::kImages] = {};

    __device__ void Take(int image, unsigned magnitude) {
#pragma unroll
      for (int i = 0; i < Spec::kImages; ++i) {
        if (image == i) of[i] = max(of[i], magnitude);
      }
    }
  };

  // Of each image, whether it has nothing but zeros, infinities and NaNs.
  struct Unscaled {
    bool of[Spec::kImages] = {};
  };

  static constexpr int kBarrier = 2;  // of the first producer; others follow
  static constexpr bool kScales = Spec::kScales;
  static constexpr bool kRescales = ConvStages<Spec>::kRescales;
  // Producers that take turns find scales of their own. So that they are mostly
  // the same, and sums need not be brought from scale to scale at each chunk,
  // exponents are multiples of this.
  static constexpr int kScaleStep = kRescales && Spec::kProducers > 1 ? 4 : 1;
  static constexpr int kThreads = ConvStages<Spec>::kProducerThreads;
  using Positions = PatchPositions<Spec>;
  using Octets = ConvOctets<Spec>;
  using Carry = ConvCarry<Spec>;
  using Batches = ConvBatches<Spec>;
  using Values = typename Octets::Octet[Batches::kAtOnce][Batches::kSlices];

  static constexpr bool kCopies = Spec::kBatchesAhead > 0;
  static_assert(!kCopies || (!Spec::kLoadsAhead && Spec::kCarriedRows == 0));

  __device__ PhaseWeights<Spec> Weights() const {
    return {reinterpret_cast<const uint4*>(t_.packed), tiles_.block()};
  }

  // Ends the chunk that this producer has written, the one before its *chunk:
  // hands it over and is true, or goes back to it and is false: where a part
  // of it was carried and the rest does not suit, for all of it; where its
  // scales do not suit; and where it has numbers that are not finite, first
  // without them and then for them alone.
  __device__ bool End(int* chunk) {
    const Magnitudes mine = most_;
    most_ = Magnitudes();
    Unscaled unscaled;
    if (kScales && (keep_ != Keep::kAll || !SurelySuit(mine))) {
      const int ended = *chunk - Spec::kProducers;
      if (has_carried_) {
        carries_from_ = ended;
        return Again(keep_, chunk);
      }
      const Magnitudes most = MostOfAll(mine);
      if (keep_ == Keep::kAll && HasNonFinite(most)) {
        carries_from_ = ended + 1;
        return Again(Keep::kFinite, chunk);
      }
      if (keep_ != Keep::kNonFinite && !has_scaled_ && !Suit(most)) {
        has_scaled_ = true;
        carries_from_ = max(carries_from_, ended);
        FindScales(most);
        return Again(keep_, chunk);
      }
      unscaled = UnscaledOf(most);
    }
    const bool is_again = keep_ == Keep::kFinite;
    HandOver(is_again, keep_ == Keep::kNonFinite, unscaled);
    if (is_again) return Again(Keep::kNonFinite, chunk);
    keep_ = Keep::kAll;
    has_scaled_ = false;
    cursor_.Advance(Spec::kProducers);
    return true;
  }
  __device__ bool Again(Keep keep, int* chunk) {
    keep_ = keep;
    *chunk -= Spec::kProducers;
    return false;
  }

  // Whether a part of chunk `chunk` is to be taken from the tile above.
  __device__ bool Carries(int chunk) const {
    if constexpr (Spec::kCarriedRows == 0) return false;
    if constexpr (Spec::kImageStep > 0) {
      if (tiles_.TileOf(chunk / Tile::kChunks) == 0) return false;
    }
    return chunk >= Tile::kChunks && chunk - Tile::kChunks >= carries_from_;
  }

  // Takes that part from the stage of the tile above: a vote has shown that all
  // of it is there, and another is before the stage is filled again.
  __device__ void TakeCarried() const {
    const int above = cursor_.Before(Tile::kChunks);
    Carry::template Take<kThreads>(stages_.pixels(above),
                                   stages_.pixels(cursor_.stage), thread_);
  }

  // Waits for the stage to be free, sends for its weights; once.
  __device__ void Begin(int chunk) {
    if (has_begun_) return;
    has_begun_ = true;
    ptx::Wait(stages_.empty(cursor_.stage), cursor_.round() ^ 1);
    if (Spec::kKeepsWeights || thread_ != 0) return;
    Weights().Send(chunk, cursor_.stage, stages_);
  }

  __device__ void HandOver(bool is_again, bool only_large,
                           const Unscaled& unscaled) {
    if (thread_ == 0) {
      auto* const note = stages_.note(cursor_.stage);
#pragma unroll
      for (int image = 0; image < Spec::kImages; ++image) {
        const float factor = PowerOfTwo(kScales ? -exponents_[image].value : 0);
        note->factors[image] = kRescales && unscaled.of[image] ? 0.0f : factor;
      }
      note->is_again = is_again;
      note->only_large = only_large;
    }
    ptx::Arrive(stages_.full(cursor_.stage));
    cursor_.Use();
    has_begun_ = false;
  }

  __device__ void FindScales(const Magnitudes& most) {
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      if (most.of[image] == 0) continue;
      exponents_[image].value = ScaleExponent(most.of[image]) & -kScaleStep;
    }
  }
  // Whether all threads' numbers, of which `mine` are the largest, are finite
  // and the scales suit them. Nearly always, and found without shared memory,
  // where the way behind loads is long. Not of an image of zeros, which needs a
  // look at the largest.
  __device__ bool SurelySuit(const Magnitudes& mine) const {
    __syncwarp();
    bool is_over = false;
    bool all_suit = true;
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      const float scaled =
          __uint_as_float(mine.of[image]) * PowerOfTwo(exponents_[image].value);
      is_over |= !(scaled < kMost);
      all_suit &= Any(scaled >= kFewest);
    }
    return !Any(is_over) && all_suit;
  }
  // Whether `yes` for any of this producer's threads.
  __device__ bool Any(bool yes) const {
    return ptx::SyncAny<kThreads>(kBarrier + producer_, yes);
  }
  // Whether the scales suit all images.
  __device__ bool Suit(const Magnitudes& most) const {
    bool all_suit = true;
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      const float scaled =
          __uint_as_float(most.of[image]) * PowerOfTwo(exponents_[image].value);
      all_suit &= most.of[image] == 0 || (scaled >= kFewest && scaled < kMost);
    }
    return all_suit;
  }
  __device__ Unscaled UnscaledOf(const Magnitudes& most) const {
    Unscaled unscaled;
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      unscaled.of[image] = keep_ == Keep::kNonFinite || most.of[image] == 0;
    }
    return unscaled;
  }
  static __device__ bool HasNonFinite(const Magnitudes& most) {
    bool has_any = false;
#pragma unroll
    for (const unsigned largest : most.of) has_any |= largest >= kInfinityBits;
    return has_any;
  }

  // The largest `mine` of this producer's threads.
  __device__ Magnitudes MostOfAll(Magnitudes mine) {
    constexpr int kWarps = kThreads / 32;
    unsigned* const most =
        stages_.magnitudes(producer_) + Spec::kImages * kWarps * turn_;
    turn_ ^= 1;
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      unsigned& largest = mine.of[image];
      largest = __reduce_max_sync(~0u, largest);
      if (thread_ % 32 == 0) most[image * kWarps + thread_ / 32] = largest;
    }
    ptx::Sync<kThreads>(kBarrier + producer_);
#pragma unroll
    for (int i = 0; i < Spec::kImages * kWarps; ++i) {
      mine.of[i / kWarps] = max(mine.of[i / kWarps], most[i]);
    }
    return mine;
  }

  // Lets the L2 bring a chunk's lines: where all blocks wait for each other at
  // each tile they also wait for memory together. Those that need the chunk
  // share its lines, whichever of them needs which.
  static constexpr bool kAnnounces =
      Spec::kTeams > 0 && Spec::kTilesPerBlock == 1;
  __device__ void Announce(int chunk_of_block) const {
    constexpr int kLine = 128 / static_cast<int>(sizeof(*t_.input));
    static_assert(Spec::kSumBlocks == 1);
    constexpr int kBlocks = Tile::kBlocksOfImage / Spec::kGroups;
    const ConvBlock<Spec> block =
        tiles_.BlockOf(chunk_of_block / Tile::kChunks);
    const int chunk = chunk_of_block % Tile::kChunks;
    const auto* const first = t_.input + Octets::FirstOf(block, chunk);
    const Index count = min(Spec::kChunk, block.ChannelsFrom(chunk)) *
                        static_cast<Index>(Spec::Input::kH) * Spec::Input::kW;
    const Index mine = number_ % kBlocks * kThreads + thread_;
#pragma unroll 1
    for (Index i = mine * kLine; i < count; i += kBlocks * kThreads * kLine) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(first + i));
    }
  }

  // Of a chunk, counted over all tiles of the block and images of its team;
  // zeros outside the input.
  __device__ void Read(int chunk, int batch, bool carries,
                       Values& values) const {
    constexpr bool kTakesTwo = Spec::kTakesPairs || Spec::kPairsColumns;
    if (!kTakesTwo || Octets::IsAligned(t_)) {
      ReadBatch<true>(chunk, batch, carries, values);
    } else {
      ReadBatch<false>(chunk, batch, carries, values);
    }
  }
  template <bool kAligned>
  __device__ void ReadBatch(int chunk_of_block, int batch, bool carries,
                            Values& values) const {
    const int number = chunk_of_block / Tile::kChunks;
    const int chunk = chunk_of_block % Tile::kChunks;
    const ConvBlock<Spec> block = tiles_.BlockOf(number);
    const int top =
        Positions::TopOf(block, tiles_.TileOf(number), block.row_part(chunk));
    const int left = Positions::LeftOf(block);
    const int channels = block.ChannelsFrom(chunk);
    const Index first = Octets::FirstOf(block, chunk);
#pragma unroll
    for (int n = 0; n < Batches::kAtOnce; ++n) {
      const int i = Batches::FirstOf(thread_, batch) + n * Batches::kStep;
      if constexpr (Spec::kPairsColumns) {
        const ColumnPair<Spec> pair(i);
        const int row = pair.Row(top);
        const int column = pair.Column(left);
        const bool inside = (i < ColumnPair<Spec>::kCount) &
                            Positions::IsRow(row) & Positions::IsColumn(column);
        Octets::template ReadPair<kAligned>(
            t_, first + (inside ? row * Spec::Input::kW + column : 0), inside,
            values[n][0]);
        continue;
      }
      const int position = Batches::PositionOf(i, carries);
      const int row = Positions::RowOf(top, position);
      const int column = Positions::ColumnOf(left, position);
      // No branch keeps the loads of positions apart.
      const bool has_row = (i < Batches::PositionsOf(carries)) &
                           Positions::IsOfImage(position) &
                           (Spec::kWrapsRows || Positions::IsRow(row));
      const Index from = first + Positions::FirstOfImage(position) +
                         row * Spec::Input::kW + column;
#pragma unroll
      for (int k = 0; k < Batches::kSlices; ++k) {
        const int octet = Batches::OctetOf(thread_, batch, k);
        const bool has_octet = has_row & Batches::HasOctet(octet);
        Octets::template Read<kAligned>(t_, from,
                                        Positions::AlongRow(row, column), octet,
                                        has_octet ? channels : 0, values[n][k]);
      }
    }
  }

  // The same in the patch, scaled and in parts.
  __device__ void Write(int batch, bool carries, Values& values) {
    uint4* const to = stages_.pixels(cursor_.stage);
    float scales[Spec::kImages];
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      scales[image] = PowerOfTwo(exponents_[image].value);
    }
#pragma unroll
    for (int n = 0; n < Batches::kAtOnce; ++n) {
      const int i = Batches::FirstOf(thread_, batch) + n * Batches::kStep;
      if (i >= Batches::PositionsOf(carries)) break;
      if constexpr (Spec::kPairsColumns) {
        WritePair(i, scales[0], values[n][0], to);
        continue;
      }
      const int position = Batches::PositionOf(i, carries);
#pragma unroll
      for (int k = 0; k < Batches::kSlices; ++k) {
        const int octet = Batches::OctetOf(thread_, batch, k);
        if (!Batches::HasOctet(octet)) continue;
        uint4* const unit = to + Group::UnitOf(octet, position);
        if constexpr (kScales) {
          const int image = Positions::ImageOf(position);
          most_.Take(image, Scale(OfImage(scales, image), values[n][k]));
          StoreParts<false, Spec::kInputParts>(values[n][k], unit,
                                               Group::kPart);
        } else {
          *unit = PackHalvesOf<false>(values[n][k]);
          if constexpr (Spec::kTakesPairs) {
            to[Group::UnitOf(octet, position + 1)] =
                PackHalvesOf<true>(values[n][k]);
          }
        }
      }
    }
  }

  __device__ void WritePair(int i, float scale, typename Octets::Octet& values,
                            uint4* to) {
    if constexpr (kScales) most_.Take(0, Scale(scale, values));
    const ColumnPair<Spec> pair(i);
    if (pair.has_both()) {
      WriteOctet(values, to + Group::UnitOf(0, pair.both()));
    }
    if (!pair.has_second()) return;
    typename Octets::Octet second;
    Octets::TakeSecond(values, second);
    WriteOctet(second, to + Group::UnitOf(0, pair.second()));
  }
  // Of scaled numbers, or bits.
  static __device__ void WriteOctet(const typename Octets::Octet& values,
                                    uint4* unit) {
    if constexpr (kScales) {
      StoreParts<false, Spec::kInputParts>(values, unit, Group::kPart);
    } else {
      *unit = PackHalvesOf<false>(values);
    }
  }

  // values[image], from registers.
  static __device__ float OfImage(const float (&values)[Spec::kImages],
                                  int image) {
    float value = values[0];
#pragma unroll
    for (int i = 1; i < Spec::kImages; ++i) {
      if (image == i) value = values[i];
    }
    return value;
  }

  // Puts zeros in the place of finite numbers, or of the others.
  static __device__ void Select(bool finite, Values& values) {
#pragma unroll
    for (auto& slices : values) {
#pragma unroll
      for (auto& octet : slices) {
#pragma unroll
        for (float& value : octet) {
          if ((fabsf(value) < Infinity()) != finite) value = 0.0f;
        }
      }
    }
  }

  // The largest magnitude of what it scales.
  static __device__ unsigned Scale(float scale, float (&values)[8]) {
    unsigned most = 0;
#pragma unroll
    for (float& value : values) {
      most = max(most, MagnitudeBits(value));
      value *= scale;
    }
    return most;
  }

  const typename Spec::Tensors& t_;
  const ConvStages<Spec>& stages_;
  const unsigned number_;  // of the block
  const BlockTiles<Spec> tiles_;
  const int producer_ = (threadIdx.x - ConvTile<Spec>::kThreads) / kThreads;
  const int thread_ = (threadIdx.x - ConvTile<Spec>::kThreads) % kThreads;
  StageCursor<Spec::kStages> cursor_{producer_};
  Exponent exponents_[Spec::kImages];
  int turn_ = 0;
  // Of the chunk that is written: what is kept of it, whether its scales were
  // found anew, whether it has a stage, and the largest of what is kept.
  Keep keep_ = Keep::kAll;
  bool has_scaled_ = false;
  bool has_begun_ = false;
  bool has_carried_ = false;  // whether it has a part from the tile above
  // Stages of chunks from this one on have the scales of now, and finite
  // numbers alone. It never decreases.
  int carries_from_ = 0;
  Magnitudes most_;
  ConvCopies<Spec> copies_{t_, stages_, tiles_, producer_* kThreads + thread_};
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PRODUCER_CUH_
