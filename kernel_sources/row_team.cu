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
#include "row_exchange.cuh"
#include "vectors.cuh"

namespace kiln {

constexpr int kMoverWarps = 1;
constexpr int kPublisherWarps = 1;
constexpr int kGathererWarps = 1;
constexpr int kReceiverWarps = 4;
constexpr int kCounterWarps = 8;
constexpr int kFinisherWarps = 8;

constexpr int kGatherer = kMoverWarps + kPublisherWarps;
constexpr int kFirstReceiver = kGatherer + kGathererWarps;
constexpr int kFirstCounter = kFirstReceiver + kReceiverWarps;
constexpr int kFirstFinisher = kFirstCounter + kCounterWarps;

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

// Warps of each kind that work on a row; rows take turns between kRowGroups
// of them, because what a short row costs is mostly waiting.
template <typename Spec>
constexpr int kRowCounters = kCounterWarps / Spec::kRowGroups;
template <typename Spec>
constexpr int kRowFinishers = kFinisherWarps / Spec::kRowGroups;

template <typename Spec>
struct TeamMemory {
  ptx::Barrier loaded[Spec::kSlots];  // by the copy engine
  ptx::Barrier done[Spec::kSlots];    // by the finishers
  ptx::Barrier counted[kRowsInFlight<Spec>];
  ptx::Barrier known[kRowsInFlight<Spec>];
  typename Spec::Statistics statistics[kRowsInFlight<Spec>];
  float states[kRowsInFlight<Spec>][kRowCounters<Spec> *
                                    sizeof(typename Spec::Reducer) /
                                    sizeof(float)];

  __device__ typename Spec::Reducer* StatesOf(int row) {
    return reinterpret_cast<typename Spec::Reducer*>(
        states[row % kRowsInFlight<Spec>]);
  }
};

// Chunk number `number` of this block: which part of memory, which place.
template <typename Spec>
struct Chunk {
  using Index = typename Spec::Index;
  int slot;
  unsigned parity;  // of the place's barriers
  Index begin;      // in memory
  int count;        // of elements; 0 past the end of the row

  __device__ explicit Chunk(int number) {
    const int row = number / Spec::kChunks;
    slot = number % Spec::kSlots;
    parity = number / Spec::kSlots % 2;
    const Index in_row = static_cast<Index>(blockIdx.x * Spec::kChunks +
                                            number % Spec::kChunks) *
                         Spec::kChunk;
    begin = static_cast<Index>(row) * Spec::kRowLength + in_row;
    const Index rest = Spec::kRowLength - in_row;
    count = static_cast<int>(max(min(rest, static_cast<Index>(Spec::kChunk)),
                                 static_cast<Index>(0)));
  }
};

template <typename Spec>
constexpr int kNumChunks = static_cast<int>(Spec::kRows) * Spec::kChunks;

// One chunk's part of a tensor, to its place in the ring. NVRTC takes no
// lambdas without options, so these are structs.
template <typename Index>
struct BulkLoadPart {
  unsigned char* slot;
  Index begin;
  int count;
  ptx::Barrier* loaded;

  template <typename T>
  __device__ void operator()(const T* tensor, int offset) const {
    ptx::BulkLoad(slot + offset, tensor + begin, count * sizeof(T), loaded);
  }
};

// The same by the lanes of a warp, for tensors that the copy engine does not
// take: those not aligned to 16 bytes.
template <typename Index>
struct LoadPart {
  unsigned char* slot;
  Index begin;
  int count;
  int lane;

  template <typename T>
  __device__ void operator()(const T* tensor, int offset) const {
    T* to = reinterpret_cast<T*>(slot + offset);
#pragma unroll 1
    for (int k = lane; k < count; k += 32) to[k] = tensor[begin + k];
  }
};

template <typename Spec>
__device__ void LoadChunk(const typename Spec::Tensors& t, unsigned char* ring,
                          const Chunk<Spec>& chunk, bool is_aligned, int lane,
                          ptx::Barrier* loaded) {
  using Index = typename Spec::Index;
  unsigned char* slot = ring + chunk.slot * Spec::kSlotBytes;
  if (!is_aligned) {
    Spec::ForEachInput(t,
                       LoadPart<Index>{slot, chunk.begin, chunk.count, lane});
    // The other lanes have written; lane 0 answers for all.
    __syncwarp();
    if (lane == 0) ptx::Arrive(loaded);
  } else if (lane == 0) {
    ptx::ArriveExpecting(loaded, chunk.count * Spec::kLoadedBytes);
    if (chunk.count == 0) return;
    Spec::ForEachInput(
        t, BulkLoadPart<Index>{slot, chunk.begin, chunk.count, loaded});
  }
}

template <typename Spec>
__device__ void LoadRows(const typename Spec::Tensors& t, unsigned char* ring,
                         TeamMemory<Spec>* memory, int lane) {
  const bool is_aligned = Spec::IsAligned(t);
#pragma unroll 1
  for (int number = 0; number < kNumChunks<Spec>; ++number) {
    const Chunk<Spec> chunk(number);
    if (number >= Spec::kSlots) {
      // The end of the phase before: its last chunk is done.
      ptx::Wait(&memory->done[chunk.slot], chunk.parity ^ 1);
    }
    LoadChunk<Spec>(t, ring, chunk, is_aligned, lane,
                    &memory->loaded[chunk.slot]);
  }
}

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

// What a thread does with its elements of a row: takes its statistics, or
// computes the results.
template <typename Spec>
struct RowTask {
  bool finishes;
  bool is_aligned;
  typename Spec::Reducer state;
  typename Spec::Statistics statistics;
};

template <typename Spec>
__device__ void FinishStaged(const typename Spec::Tensors& t,
                             const typename Spec::Tensors& staged,
                             typename Spec::Index i, float* x,
                             const RowTask<Spec>& task) {
  constexpr int kVector = Spec::kVector;
  typename Spec::template Held<kVector> held;
  const auto first = PointOf<typename Spec::Domain>(i);
  Spec::FetchForElement(staged, first, true, &held);
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    Spec::Element(held, VectorPointOf<typename Spec::Domain, kVector>(first, k),
                  x[k], task.statistics);
  }
  Spec::PutResults(t, i, Opaque(task.is_aligned), held);
}

// Counters and finishers walk through their rows by the same code, since what
// both read may be long.
template <typename Spec>
__device__ void WalkRow(const typename Spec::Tensors& t, unsigned char* ring,
                        TeamMemory<Spec>* memory, int row, int thread,
                        RowTask<Spec>* task) {
  constexpr int kVector = Spec::kVector;
#pragma unroll 1
  for (int k = 0; k < Spec::kChunks; ++k) {
    const Chunk<Spec> chunk(row * Spec::kChunks + k);
    // Known statistics imply it; waiting makes the copy engine's writes seen.
    ptx::Wait(&memory->loaded[chunk.slot], chunk.parity);
    const auto staged =
        Spec::Staged(t, ring + chunk.slot * Spec::kSlotBytes, chunk.begin);
    // In the turn of publishing, finishers only make room.
    const bool passes = task->finishes && ThisTurn() == Turn::kPublish;
#pragma unroll 1
    for (int at = passes ? chunk.count : thread * kVector; at < chunk.count;
         at += 32 * kRowCounters<Spec> * kVector) {
      float x[kVector];
      ReadStaged<Spec>(staged, chunk.begin + at, x);
      if (Opaque(task->finishes)) {
        FinishStaged<Spec>(t, staged, chunk.begin + at, x, *task);
      } else {
        Take(&task->state, x);
      }
    }
    if (task->finishes) ptx::Arrive(&memory->done[chunk.slot]);
  }
}

enum class Role : unsigned char {
  kFinisher,
  kCounter,    // merges what its threads have taken
  kPublisher,  // what the warps of counters have
  kGatherer,   // what the members of the team have
};

// Who works on which rows: first, first + stride, ...
template <typename Spec>
struct RowWork {
  Role role;
  int first, stride;
  int thread;  // of those who share a row

  __device__ RowWork(int warp, int lane) {
    thread = lane;
    if (warp < kGatherer) {
      role = Role::kPublisher;
      first = 0;
      stride = 1;
    } else if (warp < kFirstReceiver) {
      role = Role::kGatherer;
      first = blockIdx.x;
      stride = Spec::kTeam;
    } else {
      role = warp < kFirstFinisher ? Role::kCounter : Role::kFinisher;
      const int worker = (warp - kFirstCounter) % kCounterWarps;
      first = worker / kRowCounters<Spec>;
      stride = Spec::kRowGroups;
      thread += worker % kRowCounters<Spec> * 32;
    }
  }
};

// One loop for all who merge states, because the code of merging is long, and
// takes long to compile.
//
// Each member gathers some rows, once it has published its own part: all that
// wait for others would slow the cache lines they wait for.
template <typename Spec>
__device__ void WorkOnRows(const typename Spec::Tensors& t, unsigned char* ring,
                           TeamMemory<Spec>* memory,
                           const RowWork<Spec>& work) {
  const int lane = work.thread % 32;
  const bool counts = work.role == Role::kCounter;
  const bool publishes = work.role == Role::kPublisher;
  const bool finishes = work.role == Role::kFinisher;
  const bool is_aligned = Spec::IsAligned(t);
#pragma unroll 1
  for (int row = work.first; row < static_cast<int>(Spec::kRows);
       row += work.stride) {
    const int place = row % kRowsInFlight<Spec>;
    const unsigned parity = row / kRowsInFlight<Spec> % 2;
    const Records<Spec> records(t.records, row);
    unsigned long long* const own = records.members + blockIdx.x;
    RowTask<Spec> task;
    task.finishes = finishes;
    task.is_aligned = is_aligned;
    if (finishes) {
      ptx::Wait(&memory->known[place], parity);
      task.statistics = memory->statistics[place];
    }
    if (counts || finishes) {
      WalkRow<Spec>(t, ring, memory, row, work.thread, &task);
      if (finishes) continue;
    } else if (publishes) {
      ptx::Wait(&memory->counted[place], parity);
      task.state = memory->StatesOf(row)[lane % kRowCounters<Spec>];
    } else {
      while (ptx::LoadRelaxed(own) == 0) continue;
      Gather<Spec>(records.members, lane, &task.state);
    }
    // Lanes may come from their loops apart.
    __syncwarp();
    MergeLanes(lane, publishes ? kRowCounters<Spec> : 32, &task.state);
    if (counts) {
      if (lane == 0) memory->StatesOf(row)[work.thread / 32] = task.state;
      ptx::Arrive(&memory->counted[place]);
    } else if (lane == 0) {
      ptx::StoreRelaxed(publishes ? own : records.total, Publish(task.state));
    }
    // Only now may counters write where the states of this row were. The
    // exchange implies it, but by way of global memory.
    if (publishes) ptx::Arrive(&memory->known[place]);
  }
}

template <typename Spec>
__device__ void ReceiveRows(const typename Spec::Tensors& t,
                            TeamMemory<Spec>* memory, int receiver, int lane) {
#pragma unroll 1
  for (int row = receiver; row < static_cast<int>(Spec::kRows);
       row += kReceiverWarps) {
    const int place = row % kRowsInFlight<Spec>;
    const Records<Spec> records(t.records, row);
    // Before, there is nothing to ask for.
    ptx::Wait(&memory->counted[place], row / kRowsInFlight<Spec> % 2);
    unsigned long long total = 0;
    while (total == 0 && ThisTurn() == Turn::kAll) {
      total = ptx::LoadRelaxed(records.total);
    }
    typename Spec::Reducer state;
    Unpublish(total, static_cast<float>(Spec::kRowLength), &state);
    if (lane == 0) memory->statistics[place] = Spec::Finish(state);
    ptx::Arrive(&memory->known[place]);
  }
}

// Every lane arrives for itself: one for its warp would do, and costs the same,
// but racecheck does not follow that order.
template <typename Spec>
__device__ void InitTeamMemory(TeamMemory<Spec>* memory) {
  const int i = threadIdx.x;
  if (i < Spec::kSlots) {
    ptx::InitBarrier(&memory->loaded[i], 1);
    ptx::InitBarrier(&memory->done[i], 32 * kRowCounters<Spec>);
  }
  if (i < kRowsInFlight<Spec>) {
    ptx::InitBarrier(&memory->counted[i], 32 * kRowCounters<Spec>);
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
  __shared__ alignas(16) unsigned char control[sizeof(TeamMemory<Spec>)];
  auto* memory = reinterpret_cast<TeamMemory<Spec>*>(control);
  if (blockIdx.y > 0) return;
  InitTeamMemory(memory);
  // Barriers are ready before anybody uses them.
  __syncthreads();

  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const bool gathers = kGatherer <= warp && warp < kFirstReceiver;
  if (ThisTurn() != Turn::kAll && gathers != (ThisTurn() == Turn::kGather)) {
    return;
  }
  if (warp < kMoverWarps) {
    LoadRows<Spec>(t, ring, memory, lane);
  } else if (warp >= kFirstReceiver && warp < kFirstCounter) {
    ReceiveRows<Spec>(t, memory, warp - kFirstReceiver, lane);
  } else {
    WorkOnRows<Spec>(t, ring, memory, RowWork<Spec>(warp, lane));
  }
}

}  // namespace kiln
