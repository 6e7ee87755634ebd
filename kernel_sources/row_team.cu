// Normalisation in two touches of rows that no block can hold: all blocks of
// the device, one on each multiprocessor, work on a row together.
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
// All blocks must be resident: a cooperative launch of kTeam blocks. Where they
// cannot be, three launches take their turns, in which no block waits for
// another: Turn, the second extent of the grid.
#include "math.cuh"
#include "merge_lanes.cuh"
#include "ptx_bulk.cuh"
#include "row_chunks.cuh"
#include "row_exchange.cuh"
#include "vectors.cuh"

namespace kiln {

constexpr int kMoverWarps = 1;
constexpr int kPublisherWarps = 1;
constexpr int kGathererWarps = 1;
constexpr int kReceiverWarps = 4;
constexpr int kCounterWarps = 8;
constexpr int kFinisherWarps = 8;
static_assert(kCounterWarps == kFinisherWarps,
              "They share chunks in the same way.");

enum class Role : unsigned char {
  kMover,
  kPublisher,
  kGatherer,
  kReceiver,
  kCounter,
  kFinisher,
};

// What a launch does. As many blocks as that behind each other, of which only
// the first works, say so.
enum class Turn : unsigned {
  kAll = 1,      // everything; finds what the turns before have left
  kPublish = 2,  // members publish their statistics, and no more
  kGather = 3,   // gatherers publish the totals
};

__device__ inline Turn ThisTurn() { return static_cast<Turn>(gridDim.y); }

// Rows whose chunks may be in the ring at once, and one more.
template <typename Spec>
constexpr int kRowsInFlight = (Spec::kSlots + Spec::kChunks - 1) / Spec::kChunks
                              + 2;

// Counters, and finishers, that work on a row; rows take turns between
// kRowGroups of them, because what a short row costs is mostly waiting.
template <typename Spec>
constexpr int kRowWarps = kCounterWarps / Spec::kRowGroups;

template <typename Spec>
struct TeamMemory {
  ptx::Barrier loaded[Spec::kSlots];  // by the copy engine
  ptx::Barrier done[Spec::kSlots];    // by the finishers
  ptx::Barrier counted[kRowsInFlight<Spec>];
  ptx::Barrier known[kRowsInFlight<Spec>];
  typename Spec::Statistics statistics[kRowsInFlight<Spec>];
  float
      states[kRowsInFlight<Spec>]
            [kRowWarps<Spec> * sizeof(typename Spec::Reducer) / sizeof(float)];

  __device__ typename Spec::Reducer* StatesOf(int row) {
    return reinterpret_cast<typename Spec::Reducer*>(
        states[row % kRowsInFlight<Spec>]);
  }
};

// Spec::Read of the vector at position i, from the ring.
template <typename Spec>
__device__ void ReadStaged(const typename Spec::Tensors& staged,
                           typename Spec::Index i, float* x) {
  typename Spec::template Held<Spec::kVector> held;
  const auto first = PointOf<typename Spec::Domain>(i);
  Spec::FetchForRead(staged, first, true, &held);
#pragma unroll
  for (int k = 0; k < Spec::kVector; ++k) {
    x[k] = Spec::Read(
        held, VectorPointOf<typename Spec::Domain, Spec::kVector>(first, k));
  }
}

// Who works on which rows: first, first + stride, ...
template <typename Spec>
struct RowWork {
  Role role;
  int first, stride;
  int thread;  // of those who share a row

  __device__ RowWork(int warp, int lane) {
    thread = lane;
    first = 0;
    stride = 1;
    constexpr int kGatherer = kMoverWarps + kPublisherWarps;
    constexpr int kFirstReceiver = kGatherer + kGathererWarps;
    constexpr int kFirstCounter = kFirstReceiver + kReceiverWarps;
    constexpr int kFirstFinisher = kFirstCounter + kCounterWarps;
    if (warp < kMoverWarps) {
      role = Role::kMover;
    } else if (warp < kGatherer) {
      role = Role::kPublisher;
    } else if (warp < kFirstReceiver) {
      role = Role::kGatherer;
      first = blockIdx.x;
      stride = Spec::kTeam;
    } else if (warp < kFirstCounter) {
      role = Role::kReceiver;
      first = warp - kFirstReceiver;
      stride = kReceiverWarps;
    } else {
      role = warp < kFirstFinisher ? Role::kCounter : Role::kFinisher;
      const int worker = (warp - kFirstCounter) % kCounterWarps;
      first = worker / kRowWarps<Spec>;
      stride = Spec::kRowGroups;
      thread += worker % kRowWarps<Spec> * 32;
    }
  }
  __device__ bool Is(Role other) const { return role == other; }
  // The mover, counters and finishers.
  __device__ bool Walks() const {
    return Is(Role::kMover) || role >= Role::kCounter;
  }
};

// The statistics of a chunk, kAtOnce vectors of the thread at a time: one at a
// time, counters are late by a tenth to a fifth of the whole.
template <typename Spec>
__device__ void CountChunk(const typename Spec::Tensors& staged,
                           const Chunk<Spec>& chunk, int thread,
                           typename Spec::Reducer* state) {
  constexpr int kVector = Spec::kVector;
  constexpr int kStride = 32 * kRowWarps<Spec> * kVector;
#pragma unroll 1
  for (int first = thread * kVector; first < chunk.count;
       first += Spec::kAtOnce * kStride) {
    float x[Spec::kAtOnce * kVector];
    // Past its end, the chunk's last vector stands in: no branch delays a load.
#pragma unroll
    for (int k = 0; k < Spec::kAtOnce; ++k) {
      const int at = min(first + k * kStride, chunk.count - kVector);
      ReadStaged<Spec>(staged, chunk.begin + at, x + k * kVector);
    }
    if (first + (Spec::kAtOnce - 1) * kStride < chunk.count) {
      Take(state, x);
      continue;
    }
#pragma unroll
    for (int k = 0; k < Spec::kAtOnce; ++k) {
      if (first + k * kStride >= chunk.count) continue;
      float own[kVector];
#pragma unroll
      for (int j = 0; j < kVector; ++j) own[j] = x[k * kVector + j];
      Take(state, own);
    }
  }
}

template <typename Spec>
__device__ void FinishChunk(const typename Spec::Tensors& t,
                            const typename Spec::Tensors& staged,
                            const Chunk<Spec>& chunk, int thread,
                            bool is_aligned,
                            const typename Spec::Statistics& statistics) {
  constexpr int kVector = Spec::kVector;
#pragma unroll 1
  for (int at = thread * kVector; at < chunk.count;
       at += 32 * kRowWarps<Spec> * kVector) {
    float x[kVector];
    ReadStaged<Spec>(staged, chunk.begin + at, x);
    typename Spec::template Held<kVector> held;
    const auto first = PointOf<typename Spec::Domain>(chunk.begin + at);
    Spec::FetchForElement(staged, first, true, &held);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      Spec::Element(held,
                    VectorPointOf<typename Spec::Domain, kVector>(first, k),
                    x[k], statistics);
    }
    Spec::PutResults(t, first.i, Opaque(is_aligned), held);
  }
}

// The chunks of a row, one after another.
template <typename Spec>
__device__ void WalkRow(const typename Spec::Tensors& t, unsigned char* ring,
                        TeamMemory<Spec>* memory, const RowWork<Spec>& work,
                        int row, bool is_aligned,
                        const typename Spec::Statistics& statistics,
                        typename Spec::Reducer* state) {
  const bool finishes = work.Is(Role::kFinisher);
#pragma unroll 1
  for (int k = 0; k < Spec::kChunks; ++k) {
    const int number = row * Spec::kChunks + k;
    const Chunk<Spec> chunk(number);
    unsigned char* const slot = ring + chunk.slot * Spec::kSlotBytes;
    if (work.Is(Role::kMover)) {
      if (number >= Spec::kSlots) {
        // The end of the phase before: its last chunk is done.
        ptx::Wait(&memory->done[chunk.slot], chunk.parity ^ 1);
      }
      LoadChunk<Spec>(t, slot, chunk, is_aligned, work.thread,
                      &memory->loaded[chunk.slot]);
      continue;
    }
    // Known statistics imply it; waiting makes the copy engine's writes seen.
    ptx::Wait(&memory->loaded[chunk.slot], chunk.parity);
    const auto staged = Spec::Staged(t, slot, chunk.begin);
    if (!finishes) {
      CountChunk<Spec>(staged, chunk, work.thread, state);
      continue;
    }
    // In the turn of publishing, finishers only make room.
    if (ThisTurn() != Turn::kPublish) {
      FinishChunk<Spec>(t, staged, chunk, work.thread, is_aligned, statistics);
    }
    ptx::Arrive(&memory->done[chunk.slot]);
  }
}

// The statistics of a row, once its total is there.
template <typename Spec>
__device__ typename Spec::Statistics Receive(const unsigned long long* record) {
  unsigned long long total = 0;
  while (total == 0 && ThisTurn() != Turn::kPublish) {
    total = ptx::LoadRelaxed(record);
  }
  typename Spec::Reducer state;
  Unpublish(total, static_cast<float>(Spec::kRowLength), &state);
  return Spec::Finish(state);
}

// One loop for all roles, because the code of walking through rows and that of
// merging states are long, and take long to compile. Counters merge what their
// threads have taken, the publisher what the warps of counters have, the
// gatherer what the members of the team have.
//
// Each member gathers some rows, once it has published its own part: all that
// wait for others would slow the cache lines they wait for.
template <typename Spec>
__device__ void WorkOnRows(const typename Spec::Tensors& t, unsigned char* ring,
                           TeamMemory<Spec>* memory,
                           const RowWork<Spec>& work) {
  const int lane = work.thread % 32;
  const bool counts = work.Is(Role::kCounter);
  const bool publishes = work.Is(Role::kPublisher);
  const bool is_aligned = Spec::IsAligned(t);
#pragma unroll 1
  for (int row = work.first; row < static_cast<int>(Spec::kRows);
       row += work.stride) {
    const int place = row % kRowsInFlight<Spec>;
    const unsigned parity = row / kRowsInFlight<Spec> % 2;
    const Records<Spec> records(t.records, row);
    unsigned long long* const own = records.members + blockIdx.x;
    typename Spec::Reducer state;
    if (work.Walks()) {
      typename Spec::Statistics statistics;
      if (work.Is(Role::kFinisher)) {
        ptx::Wait(&memory->known[place], parity);
        statistics = memory->statistics[place];
      }
      WalkRow<Spec>(t, ring, memory, work, row, is_aligned, statistics, &state);
      if (!counts) continue;
    } else if (work.Is(Role::kGatherer)) {
      while (ptx::LoadRelaxed(own) == 0) continue;
      Gather<Spec>(records.members, lane, &state);
    } else {
      // Before, there is nothing to publish, or to ask for.
      ptx::Wait(&memory->counted[place], parity);
      if (publishes) {
        state = memory->StatesOf(row)[lane % kRowWarps<Spec>];
      } else {
        const auto statistics = Receive<Spec>(records.total);
        if (lane == 0) memory->statistics[place] = statistics;
        ptx::Arrive(&memory->known[place]);
        continue;
      }
    }
    // Lanes may come from their loops apart.
    __syncwarp();
    MergeLanes(lane, publishes ? kRowWarps<Spec> : 32, &state);
    if (counts) {
      if (lane == 0) memory->StatesOf(row)[work.thread / 32] = state;
      ptx::Arrive(&memory->counted[place]);
    } else if (lane == 0) {
      ptx::StoreRelaxed(publishes ? own : records.total, Publish(state));
    }
    // Only now may counters write where the states of this row were. The
    // exchange implies it, but by way of global memory.
    if (publishes) ptx::Arrive(&memory->known[place]);
  }
}

// Every lane arrives for itself: one for its warp would do, and costs the same,
// but racecheck does not follow that order.
template <typename Spec>
__device__ void InitTeamMemory(TeamMemory<Spec>* memory) {
  const int i = threadIdx.x;
  if (i < Spec::kSlots) {
    ptx::InitBarrier(&memory->loaded[i], 1);
    ptx::InitBarrier(&memory->done[i], 32 * kRowWarps<Spec>);
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
      static_cast<long long>(Spec::kRows) * Spec::kChunks == kNumChunks<Spec>,
      "An int must hold the number of chunks.");
  extern __shared__ __align__(128) unsigned char ring[];
  alignas(16) __shared__ unsigned char control[sizeof(TeamMemory<Spec>)];
  auto* memory = reinterpret_cast<TeamMemory<Spec>*>(control);
  if (blockIdx.y > 0) return;
  InitTeamMemory(memory);
  // Barriers are ready before anybody uses them.
  __syncthreads();

  const RowWork<Spec> work(threadIdx.x / 32, threadIdx.x % 32);
  if (ThisTurn() != Turn::kAll &&
      work.Is(Role::kGatherer) != (ThisTurn() == Turn::kGather)) {
    return;
  }
  WorkOnRows<Spec>(t, ring, memory, work);
}

}  // namespace kiln
