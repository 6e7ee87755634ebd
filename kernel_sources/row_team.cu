// Longer than 400 lines because roles of a team share its places and barriers.
// Normalisation in two touches of rows that no block can hold: a team of
// blocks works on a row together. All blocks of the device, one on each
// multiprocessor, are one team, or several with rows of their own.
//
//   row statistics = reducer over Spec::Read of the row's elements
//   outputs        = Spec::Element(element, its Spec::Read, statistics)
//
// A row is Spec::kRowLength neighbours in memory; a block has a slice of each,
// cut into kChunks chunks. Chunks pass through a ring of kSlots places in
// shared memory, several rows in flight, and each role has warps of its own:
//
//   mover     loads chunk after chunk by bulk copies, each as soon as its place
//             in the ring is free
//   counters  take the block's statistics of each row as its chunks arrive
//   publisher gives them to the team, row by row
//   gatherer  merges those of all members, for some of the rows
//   receivers wait for the totals; several, because each takes a while to come
//   finishers compute the results from the ring and write them
//
// so that loads, waiting for the team and stores of different rows overlap. A
// place in the ring holds one chunk of each whole input (an operand with as
// many elements as the result). Results are written straight from registers:
// by way of the ring and the copy engine they would hold their places longer,
// and wait behind the loads.
//
// All blocks must be resident: a cooperative launch of kTeams teams of kTeam.
// Where they cannot be, three launches take their turns, in which no block
// waits for another: Turn, the second extent of the grid.
#include "math.cuh"
#include "merge_lanes.cuh"
#include "opaque.cuh"
#include "ptx_bulk.cuh"
#include "row_chunks.cuh"
#include "row_exchange.cuh"
#include "vectors.cuh"

namespace kiln {

constexpr int kMoverWarps = 1;
constexpr int kPublisherWarps = 1;
constexpr int kGathererWarps = 1;
constexpr int kReceiverWarps = 4;
constexpr int kExchangeWarps =
    kPublisherWarps + kGathererWarps + kReceiverWarps;
constexpr int kCounterWarps = 8;
// Of loads, a block's at once. All that has room at the start would let some
// blocks wait for their part of the first row until all of the ring is there.
constexpr unsigned kBytesInFlight = 64 << 10;

// Rows whose chunks may be in the ring at once, and one more.
template <typename Spec>
constexpr unsigned kRowsInFlight =
    (Spec::kSlots + Spec::kChunks - 1) / Spec::kChunks + 2;

// Counters and finishers that work on a row; rows take turns between kRowGroups
// of them, because what a short row costs is mostly waiting.
template <typename Spec>
constexpr int kRowWarps = kCounterWarps / Spec::kRowGroups;
template <typename Spec>
constexpr int kRowFinishers = Spec::kFinisherWarps / Spec::kRowGroups;

// Which place of those for rows in flight, and the parity of its barriers.
template <typename Spec>
struct RowPlace {
  unsigned index;
  unsigned parity;

  __device__ explicit RowPlace(unsigned row)
      : index(Opaque(row % kRowsInFlight<Spec>)),
        parity(Opaque(row / kRowsInFlight<Spec> % 2)) {}
};

template <typename Spec>
struct TeamMemory {
  ptx::Barrier loaded[Spec::kSlots];  // by the copy engine
  ptx::Barrier done[Spec::kSlots];    // by the finishers
  ptx::Barrier counted[kRowsInFlight<Spec>];
  ptx::Barrier known[kRowsInFlight<Spec>];
  ptx::Barrier tag_read;
  typename Spec::Statistics statistics[kRowsInFlight<Spec>];
  float
      states[kRowsInFlight<Spec>]
            [kRowWarps<Spec> * sizeof(typename Spec::Reducer) / sizeof(float)];

  __device__ typename Spec::Reducer* StatesAt(const RowPlace<Spec>& place) {
    return reinterpret_cast<typename Spec::Reducer*>(states[place.index]);
  }
};

// The point of a vector in the ring, where a chunk's elements begin at 0.
template <typename Index>
__device__ Point<Index> InRing(Point<Index> first, int at) {
  first.i = at;
  return first;
}

// Spec::Read of the vector at position `at` of a chunk, from the ring.
template <typename Spec>
__device__ void ReadStaged(const typename Spec::Tensors& staged,
                           const Chunk<Spec>& chunk, int at, float* x) {
  typename Spec::template Held<Spec::kVector> held;
  const auto first = PointOf<typename Spec::Domain>(chunk.begin + at);
  Spec::FetchForRead(staged, InRing(first, at), true, &held);
#pragma unroll
  for (int k = 0; k < Spec::kVector; ++k) {
    x[k] = Spec::Read(
        held, VectorPointOf<typename Spec::Domain, Spec::kVector>(first, k));
  }
}

// Waits until so many of the loads before this chunk's are done that it may be
// on its way, too.
template <typename Spec>
__device__ void AwaitLoads(TeamMemory<Spec>* memory, unsigned number) {
  constexpr unsigned kInFlight =
      (kBytesInFlight + Spec::kSlotBytes - 1) / Spec::kSlotBytes;
  if (kInFlight >= Spec::kSlots || number < kInFlight) return;
  const unsigned earlier = number - kInFlight;
  ptx::Wait(&memory->loaded[earlier % Spec::kSlots],
            earlier / Spec::kSlots % 2);
}

template <typename Spec>
__device__ void LoadRows(const typename Spec::Tensors& t, unsigned char* ring,
                         TeamMemory<Spec>* memory, unsigned lane) {
  const bool is_aligned = Spec::IsAligned(t);
  const unsigned chunks =
      static_cast<unsigned>(RowsOfTeam<Spec>()) * Spec::kChunks;
#pragma unroll 1
  for (unsigned number = 0; number < chunks; ++number) {
    const Chunk<Spec> chunk(number / Spec::kChunks, number % Spec::kChunks);
    // The end of the phase before: its last chunk is done. Before the first
    // phase, barriers take it for ended.
    ptx::Wait(&memory->done[chunk.slot], chunk.parity ^ 1);
    AwaitLoads<Spec>(memory, number);
    LoadChunk<Spec>(t, ring + chunk.slot * Spec::kSlotBytes, chunk, is_aligned,
                    lane, &memory->loaded[chunk.slot]);
  }
}

// The statistics of a chunk, kAtOnce vectors of the thread at a time, or as
// many as it has.
template <typename Spec>
__device__ void CountChunk(const typename Spec::Tensors& staged,
                           const Chunk<Spec>& chunk, unsigned thread,
                           typename Spec::Reducer* state) {
  constexpr int kVector = Spec::kVector;
  constexpr int kStride = 32 * kRowWarps<Spec> * kVector;
  constexpr int kVectors =
      (static_cast<int>(Spec::kChunk) + kStride - 1) / kStride;
  constexpr int kAtOnce = kVectors < Spec::kAtOnce ? kVectors : Spec::kAtOnce;
  // Whether all chunks are whole or empty, and each thread has all vectors.
  constexpr bool kIsEven = Spec::kRowLength % Spec::kChunk == 0 &&
                           Spec::kChunk % (kAtOnce * kStride) == 0;
#pragma unroll 1
  for (int first = thread * kVector; first < chunk.count;
       first += kAtOnce * kStride) {
    float x[kAtOnce * kVector];
    // Past its end, the chunk's last vector stands in: no branch delays a load.
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int at = min(first + k * kStride, chunk.count - kVector);
      ReadStaged<Spec>(staged, chunk, at, x + k * kVector);
    }
    if (kIsEven || first + (kAtOnce - 1) * kStride < chunk.count) {
      Take(state, x);
      continue;
    }
    // The first vector is there, and the last is not.
#pragma unroll
    for (int k = 0; k < kAtOnce - 1; ++k) {
      if (k > 0 && first + k * kStride >= chunk.count) break;
      float own[kVector];
#pragma unroll
      for (int j = 0; j < kVector; ++j) own[j] = x[k * kVector + j];
      Take(state, own);
    }
  }
}

// Waits until the place of a chunk is being filled with it. A barrier says the
// same of a phase and of the one two before, and where warps take turns with
// rows they may come for this chunk while that of others, which had the place
// before, is still on its way.
template <typename Spec>
__device__ void AwaitTurnOf(TeamMemory<Spec>* memory,
                            const Chunk<Spec>& chunk) {
  if constexpr (Spec::kRowGroups > 1) {
    ptx::Wait(&memory->done[chunk.slot], chunk.parity ^ 1);
  }
}

// A chunk's elements in the ring, once they are there. Known statistics imply
// it; waiting makes the copy engine's writes seen.
template <typename Spec>
__device__ typename Spec::Tensors AwaitStaged(const typename Spec::Tensors& t,
                                              unsigned char* ring,
                                              TeamMemory<Spec>* memory,
                                              const Chunk<Spec>& chunk) {
  ptx::Wait(&memory->loaded[chunk.slot], chunk.parity);
  return Spec::Staged(t, ring + chunk.slot * Spec::kSlotBytes);
}

template <typename Spec>
__device__ void Count(const typename Spec::Tensors& t, unsigned char* ring,
                      TeamMemory<Spec>* memory, unsigned group,
                      unsigned thread) {
  const int rows = RowsOfTeam<Spec>();
#pragma unroll 1
  for (int row = group; row < rows; row += Spec::kRowGroups) {
    typename Spec::Reducer state;
#pragma unroll 1
    for (int k = 0; k < Spec::kChunks; ++k) {
      const Chunk<Spec> chunk(row, k);
      AwaitTurnOf<Spec>(memory, chunk);
      CountChunk<Spec>(AwaitStaged(t, ring, memory, chunk), chunk, thread,
                       &state);
    }
    MergeIntoFirstLane(32, &state);
    const RowPlace<Spec> place(row);
    if (thread % 32 == 0) memory->StatesAt(place)[thread / 32] = state;
    ptx::Arrive(&memory->counted[place.index]);
  }
}

// The tag of this launch, of which a turn is a part. By all warps that
// exchange; the first thread of the publisher says it to the next launch, once
// all have read that of the last.
template <typename Spec>
__device__ Tag TakeTag(const typename Spec::Tensors& t,
                       TeamMemory<Spec>* memory) {
  unsigned long long* const last = Records<Spec>::LastTag(t.records);
  const Tag tag = TagAfter(*last);
  if (ThisTurn() != Turn::kAll) return tag;
  ptx::Arrive(&memory->tag_read);
  if (threadIdx.x == 32 * kMoverWarps) {
    ptx::Wait(&memory->tag_read, 0);
    *last = tag;
  }
  __syncwarp();
  return tag;
}

// The publisher's rows and the gatherer's. They end in the same way, and share
// the code for it.
//
// Each member gathers the statistics of some rows, once it has published its
// own: all that wait for others would slow the cache lines they wait for.
template <typename Spec>
__device__ void ExchangeRows(const typename Spec::Tensors& t,
                             TeamMemory<Spec>* memory, Tag tag, bool gathers,
                             unsigned lane) {
  const int rows = RowsOfTeam<Spec>();
  const unsigned member = MemberOfTeam<Spec>();
  const int stride = gathers ? Spec::kTeam : 1;
#pragma unroll 1
  for (int row = gathers ? member : 0; row < rows; row += stride) {
    const RowPlace<Spec> place(row);
    const Records<Spec> records(t.records, RowOfAll<Spec>(row));
    unsigned long long* record = records.members + member;
    typename Spec::Reducer state;
    if (gathers) {
      while (!IsThere(ptx::LoadRelaxed(record), tag)) continue;
      state = Gather<Spec>(records.members, tag, lane);
      record = records.total;
    } else {
      ptx::Wait(&memory->counted[place.index], place.parity);
      state = memory->StatesAt(place)[lane % kRowWarps<Spec>];
    }
    MergeIntoFirstLane(gathers ? 32 : kRowWarps<Spec>, &state);
    if (lane == 0) ptx::StoreRelaxed(record, Publish(state, tag));
    // Only now may counters write where the states of this row were. The
    // exchange implies it, but by way of global memory.
    if (!gathers) ptx::Arrive(&memory->known[place.index]);
  }
}

template <typename Spec>
__device__ void ReceiveRows(const typename Spec::Tensors& t,
                            TeamMemory<Spec>* memory, Tag tag,
                            unsigned receiver, unsigned lane) {
  const int rows = RowsOfTeam<Spec>();
#pragma unroll 1
  for (int row = receiver; row < rows; row += kReceiverWarps) {
    const RowPlace<Spec> place(row);
    const Records<Spec> records(t.records, RowOfAll<Spec>(row));
    // Before, there is nothing to ask for.
    ptx::Wait(&memory->counted[place.index], place.parity);
    unsigned long long total = tag ^ kTagBit;
    while (!IsThere(total, tag) && ThisTurn() != Turn::kPublish) {
      total = ptx::LoadRelaxed(records.total);
    }
    typename Spec::Reducer state;
    Unpublish(total, static_cast<float>(Spec::kRowLength), &state);
    if (lane == 0) memory->statistics[place.index] = Spec::Finish(state);
    ptx::Arrive(&memory->known[place.index]);
  }
}

// Spec::kFinishedAtOnce vectors of the thread at a time, so that one's loads
// and special functions hide behind another's.
template <typename Spec>
__device__ void FinishChunk(const typename Spec::Tensors& t,
                            const typename Spec::Tensors& staged,
                            bool is_aligned, const Chunk<Spec>& chunk,
                            unsigned thread,
                            const typename Spec::Statistics& statistics) {
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
  constexpr int kStride = 32 * kRowFinishers<Spec> * kVector;
  constexpr int kAtOnce = Spec::kChunk <= kStride ? 1 : Spec::kFinishedAtOnce;
#pragma unroll 1
  for (int begin = thread * kVector; begin < chunk.count;
       begin += kAtOnce * kStride) {
    typename Spec::template Held<kVector> held[kAtOnce];
    Point<typename Spec::Index> first[kAtOnce];
    // Past its end, the chunk's last vector stands in: no branch delays a load.
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int at = min(begin + k * kStride, chunk.count - kVector);
      first[k] = PointOf<Domain>(chunk.begin + at);
      const auto in_ring = InRing(first[k], at);
      Spec::FetchForRead(staged, in_ring, true, &held[k]);
      Spec::FetchForElement(staged, in_ring, true, &held[k]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        const auto at = VectorPointOf<Domain, kVector>(first[k], j);
        Spec::Element(held[k], at, Spec::Read(held[k], at), statistics);
      }
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (k > 0 && begin + k * kStride >= chunk.count) break;
      Spec::PutResults(t, first[k].i, is_aligned, held[k]);
    }
  }
}

template <typename Spec>
__device__ void FinishRows(const typename Spec::Tensors& t, unsigned char* ring,
                           TeamMemory<Spec>* memory, unsigned group,
                           unsigned thread) {
  const bool is_aligned = Spec::IsAligned(t);
  const int rows = RowsOfTeam<Spec>();
#pragma unroll 1
  for (int row = group; row < rows; row += Spec::kRowGroups) {
    const RowPlace<Spec> place(row);
    if constexpr (Spec::kRowGroups > 1) {
      // Then the row that had these statistics before is finished, too.
      const Chunk<Spec> first(row, 0);
      AwaitTurnOf<Spec>(memory, first);
      ptx::Wait(&memory->loaded[first.slot], first.parity);
    }
    ptx::Wait(&memory->known[place.index], place.parity);
    const typename Spec::Statistics statistics =
        memory->statistics[place.index];
#pragma unroll 1
    for (int k = 0; k < Spec::kChunks; ++k) {
      const Chunk<Spec> chunk(row, k);
      const auto staged = AwaitStaged(t, ring, memory, chunk);
      // In the turn of publishing, finishers only make room.
      if (ThisTurn() != Turn::kPublish) {
        FinishChunk<Spec>(t, staged, is_aligned, chunk, thread, statistics);
      }
      ptx::Arrive(&memory->done[chunk.slot]);
    }
  }
}

// Every lane arrives for itself: one for its warp would do, and costs the same,
// but racecheck does not follow that order.
template <typename Spec>
__device__ void InitTeamMemory(TeamMemory<Spec>* memory) {
  const unsigned i = threadIdx.x;
  if (i == 0) ptx::InitBarrier(&memory->tag_read, 32 * kExchangeWarps);
  if (i < Spec::kSlots) {
    ptx::InitBarrier(&memory->loaded[i], 1);
    ptx::InitBarrier(&memory->done[i], 32 * kRowFinishers<Spec>);
  }
  if (i < kRowsInFlight<Spec>) {
    ptx::InitBarrier(&memory->counted[i], 32 * kRowWarps<Spec>);
    ptx::InitBarrier(&memory->known[i], 2 * 32);  // publisher and receiver
  }
  ptx::FenceBarrierInit();
}

template <typename Spec>
__device__ void RowTeam(const typename Spec::Tensors& t) {
  static_assert(Spec::kChunk % Spec::kVector == 0 &&
                    Spec::kRowLength % Spec::kVector == 0,
                "Vectors must not cross the end of a chunk.");
  static_assert(Spec::kSlotBytes % 128 == 0, "Places are aligned to lines.");
  static_assert(
      Spec::kSlots > (Spec::kRowGroups - 1) * Spec::kChunks ||
          Spec::kSlots >=
              static_cast<long long>(Spec::kRows + Spec::kTeams - 1) /
                  Spec::kTeams * Spec::kChunks,
      "Warps that wait for a place are at most one phase ahead of it.");
  static_assert(static_cast<long long>(Spec::kRows) * Spec::kChunks < 1ll << 31,
                "An int must hold the number of chunks.");
  extern __shared__ __align__(128) unsigned char ring[];
  alignas(16) __shared__ unsigned char control[sizeof(TeamMemory<Spec>)];
  auto* memory = reinterpret_cast<TeamMemory<Spec>*>(control);
  if (blockIdx.y > 0) return;
  InitTeamMemory(memory);
  // Barriers are ready before anybody uses them.
  __syncthreads();

  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  constexpr int kGatherer = kMoverWarps + kPublisherWarps;
  constexpr int kFirstReceiver = kGatherer + kGathererWarps;
  constexpr int kFirstCounter = kFirstReceiver + kReceiverWarps;
  constexpr int kFirstFinisher = kFirstCounter + kCounterWarps;
  const bool gathers = warp >= kGatherer && warp < kFirstReceiver;
  if (ThisTurn() != Turn::kAll && gathers != (ThisTurn() == Turn::kGather)) {
    return;
  }
  if (warp < kMoverWarps) {
    LoadRows<Spec>(t, ring, memory, lane);
  } else if (warp < kFirstCounter) {
    const Tag tag = TakeTag<Spec>(t, memory);
    if (warp < kFirstReceiver) {
      ExchangeRows<Spec>(t, memory, tag, gathers, lane);
    } else {
      ReceiveRows<Spec>(t, memory, tag, warp - kFirstReceiver, lane);
    }
  } else if (warp < kFirstFinisher) {
    constexpr int kThreads = 32 * kRowWarps<Spec>;
    const unsigned thread = threadIdx.x - 32 * kFirstCounter;
    Count<Spec>(t, ring, memory, thread / kThreads, thread % kThreads);
  } else {
    constexpr int kThreads = 32 * kRowFinishers<Spec>;
    const unsigned thread = threadIdx.x - 32 * kFirstFinisher;
    FinishRows<Spec>(t, ring, memory, thread / kThreads, thread % kThreads);
  }
}

}  // namespace kiln
