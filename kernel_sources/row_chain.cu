// Several reductions over the same rows, one computed of another or all of the
// same elements, and what is computed of them, in two touches: each block reads
// its rows, keeps them in shared memory, and writes the results.
//
//   for each link:  statistics += Spec::Finish(StateOf(link) over
//                                              Spec::Value(element,
//                                              statistics))
//   outputs         = Spec::Element(element, statistics)
//   outputs of rows = Spec::RowElement(statistics)
//
// A row is Spec::kRowLength elements, Spec::kPitch apart. Where that is 1,
// Spec::kLanes neighbouring threads share a row; else rows lie side by side,
// threads next to each other have the next ones, and Spec::kLanes threads above
// each other share theirs. Where one block has no room for a row,
// Spec::kCluster blocks share it, and a link may be of a part of it that whole
// blocks have: a norm of fewer channels before one of more. Tensors of which
// links are made are copied to places that the thread alone uses, as they are,
// so that nothing but statistics is exchanged. No atomics; one fixed order.
#include "async_copy.cuh"
#include "math.cuh"
#include "merge_block.cuh"
#include "merge_columns.cuh"
#include "opaque.cuh"
#include "reducers.cuh"
#include "vectors.cuh"

#if __CUDA_ARCH__ >= 900
#include "ptx_cluster.cuh"
#endif

namespace kiln {

// Names one of a Spec's reductions.
template <int kNumber>
struct Link {};

// Where one thread works. Threads without a row do again what the last one does
// but for writing, since all must meet at the barriers.
template <typename Spec>
struct ChainPart {
  using Index = typename Spec::Index;
  static constexpr bool kSideBySide = Spec::kPitch > 1;
  // Of a vector: elements of one row, and rows.
  static constexpr int kAlong = kSideBySide ? 1 : Spec::kVector;
  static constexpr int kRows = kSideBySide ? Spec::kVector : 1;
  static constexpr int kAbreast = Spec::kThreads / Spec::kLanes;
  static constexpr int kStride = Spec::kLanes * kAlong;
  static constexpr int kSlice =  // elements of a row that a block has
      static_cast<int>(Spec::kRowLength / Spec::kCluster);
  static constexpr int kSteps = (kSlice + kStride - 1) / kStride;
  static constexpr int kRounds = (kSteps + Spec::kAtOnce - 1) / Spec::kAtOnce;

  Index row;    // the first of the thread's
  Index begin;  // of its first element, in memory
  int first;    // of its elements, in the row
  bool is_inside;
  bool is_aligned;  // the tensors are

  __device__ explicit ChainPart(const typename Spec::Tensors& t) {
    const Index block = BlockInMemory<Spec>();
    is_aligned = Spec::IsAligned(t);
    if constexpr (kSideBySide) {
      constexpr Index kStrips =
          (Spec::kPitch + kAbreast * kRows - 1) / (kAbreast * kRows);
      const Index at =
          (block % kStrips * kAbreast + threadIdx.x % kAbreast) * kRows;
      const Index column = min(at, Spec::kPitch - kRows);
      is_inside = at < Spec::kPitch;
      first = threadIdx.x / kAbreast;
      row = block / kStrips * Spec::kPitch + column;
      begin = block / kStrips * Spec::kRowLength * Spec::kPitch + column;
    } else {
      const Index own = block / Spec::kCluster * kAbreast +
                        static_cast<Index>(threadIdx.x / Spec::kLanes);
      is_inside = own < Spec::kRows;
      first = threadIdx.x % Spec::kLanes * kAlong;
      row = min(own, Spec::kRows - 1);
      begin = row * Spec::kRowLength + rank() * kSlice;
    }
  }
  // Of the block, among those that share its rows.
  __device__ static int rank() { return blockIdx.x % Spec::kCluster; }
  // Of the vector of one of the thread's steps.
  __device__ Index PositionOf(int step) const {
    return begin + (first + step * kStride) * Spec::kPitch;
  }
  // Steps of this thread before the end of its rows.
  __device__ int steps() const {
    return first >= kSlice ? 0 : (kSlice - first + kStride - 1) / kStride;
  }
  // Neighbouring threads' places are neighbours.
  __device__ static int PlaceOf(int step) {
    return (step * Spec::kThreads + static_cast<int>(threadIdx.x)) *
           Spec::kVector;
  }
};

// Starts the copies of the thread's elements, a group for each round.
template <typename Spec>
__device__ void CopyChain(const typename Spec::Tensors& t,
                          const ChainPart<Spec>& part,
                          const typename Spec::Kept& kept) {
  using Part = ChainPart<Spec>;
  const int steps = part.steps();
#pragma unroll 1
  for (int round = 0; round < Part::kRounds; ++round) {
#pragma unroll
    for (int k = 0; k < Spec::kAtOnce; ++k) {
      const int step = round * Spec::kAtOnce + k;
      if (step < steps) {
        Spec::BeginCopies(t, part.PositionOf(step), part.is_aligned,
                          Part::PlaceOf(step), kept);
      }
    }
    CommitCopies();
  }
}

// Takes the link's values of the thread's elements of one round, the `count`
// steps from `begin` on; there may be fewer, or none.
template <typename Spec, int kLink, typename State>
__device__ void TakeRound(const typename Spec::Tensors& t,
                          const ChainPart<Spec>& part,
                          const typename Spec::Kept& kept, int begin, int count,
                          const typename Spec::Statistics* rows,
                          State* states) {
  using Part = ChainPart<Spec>;
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
  constexpr int kAtOnce = Spec::kAtOnce;
  float x[Part::kRows][kAtOnce * Part::kAlong];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    if (k >= count) continue;
    const int step = begin + k;
    const auto first = PointOf<Domain>(part.PositionOf(step));
    typename Spec::template Held<kVector> held;
    Spec::Recall(kept, Part::PlaceOf(step), &held);
    Spec::FetchForRead(t, first, part.is_aligned, &held);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const int row = Part::kSideBySide ? j : 0;
      x[row][k * Part::kAlong + j % Part::kAlong] =
          Spec::Value(held, VectorPointOf<Domain, kVector>(first, j), rows[row],
                      Link<kLink>());
    }
  }
#pragma unroll
  for (int row = 0; row < Part::kRows; ++row) {
    if (count >= kAtOnce) {
      Take(&states[row], x[row]);
    } else {
      TakeFirst<Part::kAlong>(count, x[row], &states[row]);
    }
  }
}

// Memory of a block for the states of each thread's rows that lie side by side.
template <typename Spec>
__device__ float* SharedStates() {
  __shared__ float words[Spec::kStateWords * Spec::kThreads * Spec::kVector];
  return words;
}

#if __CUDA_ARCH__ >= 900
// Merges the states of kBlocks neighbours in a cluster, into every thread.
template <int kBlocks, typename State>
__device__ void MergeNeighbours(int rank, State* state) {
  __shared__ StatesMemory<State, 1> own;
  if (threadIdx.x == 0) own[0] = *state;
  // All blocks have written.
  ptx::ClusterArrive();
  ptx::ClusterWait();
  const unsigned from = ptx::MapToRank(
      own.words, rank / kBlocks * kBlocks + threadIdx.x % kBlocks);
  float* words = reinterpret_cast<float*>(state);
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(State) / sizeof(float)); ++k) {
    words[k] = ptx::LoadFromCluster(from + k * sizeof(float));
  }
  // All have read, before a block ends or merges another link.
  ptx::ClusterArrive();
  ptx::ClusterWait();
  MergeLanes<kBlocks>(state);
}
#endif

// Merges what the threads of each row, or of the part of it that the link is
// of, have taken.
template <typename Spec, int kLink, typename State>
__device__ void MergeLink(State* states) {
  if constexpr (ChainPart<Spec>::kSideBySide) {
    static_assert(sizeof(State) <= Spec::kStateWords * sizeof(float),
                  "There is no more room.");
    MergeColumns<Spec::kThreads, Spec::kLanes, Spec::kVector>(
        SharedStates<Spec>(), states);
  } else {
    MergeBlock<Spec::kThreads, Spec::kLanes>(threadIdx.x % Spec::kLanes,
                                             states);
    // All have read before another link is merged in the same memory.
    if constexpr (Spec::kLanes > 32) __syncthreads();
#if __CUDA_ARCH__ >= 900
    constexpr int kBlocks = Spec::BlocksOf(Link<kLink>());
    if constexpr (kBlocks > 1) {
      MergeNeighbours<kBlocks>(ChainPart<Spec>::rank(), states);
    }
#endif
  }
}

// Computes the statistics of the links from kLink on.
template <typename Spec, int kLink>
__device__ void CountLinks(const typename Spec::Tensors& t,
                           const ChainPart<Spec>& part,
                           const typename Spec::Kept& kept,
                           typename Spec::Statistics* rows) {
  using Part = ChainPart<Spec>;
  if constexpr (kLink < Spec::kLinks) {
    decltype(Spec::StateOf(Link<kLink>())) states[Part::kRows];
    const int steps = part.steps();
#pragma unroll 1
    for (int round = 0; round < Part::kRounds; ++round) {
      const int begin = round * Spec::kAtOnce;
      // Of the groups of copies, this round's has arrived.
      if constexpr (kLink == 0) WaitForCopies<Part::kRounds - 1>();
      TakeRound<Spec, kLink>(t, part, kept, begin, steps - begin, rows, states);
      if constexpr (kLink == 0) CommitCopies();
    }
    MergeLink<Spec, kLink>(states);
#pragma unroll
    for (int row = 0; row < Part::kRows; ++row) {
      Spec::Finish(states[row], Link<kLink>(), &rows[row]);
    }
    CountLinks<Spec, kLink + 1>(t, part, kept, rows);
  }
}

template <typename Spec>
__device__ void WriteChain(const typename Spec::Tensors& t,
                           const ChainPart<Spec>& part,
                           const typename Spec::Kept& kept,
                           const typename Spec::Statistics* rows) {
  using Part = ChainPart<Spec>;
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
  const int steps = part.steps();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const auto first = PointOf<Domain>(part.PositionOf(step));
    typename Spec::template Held<kVector> held;
    Spec::Recall(kept, Part::PlaceOf(step), &held);
    Spec::FetchForElement(t, first, part.is_aligned, &held);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      Spec::Element(held, VectorPointOf<Domain, kVector>(first, j),
                    rows[Part::kSideBySide ? j : 0]);
    }
    Spec::PutResults(t, first.i, Opaque(part.is_aligned), held);
  }
}

template <typename Spec>
__device__ void KeepChain(const typename Spec::Tensors& t,
                          unsigned char* memory) {
  using Part = ChainPart<Spec>;
  const Part part(t);
  const typename Spec::Kept kept = Spec::KeptIn(memory);
  CopyChain<Spec>(t, part, kept);
  typename Spec::Statistics rows[Part::kRows];
  CountLinks<Spec, 0>(t, part, kept, rows);
  if (!part.is_inside) return;
  if constexpr (Spec::kWritesElements) WriteChain<Spec>(t, part, kept, rows);
  if constexpr (Spec::kWritesRows) {
    if (part.first > 0 || part.rank() > 0) return;
#pragma unroll
    for (int row = 0; row < Part::kRows; ++row) {
      Spec::RowElement(t, PointOf<typename Spec::RowDomain>(part.row + row),
                       rows[row]);
    }
  }
}

template <typename Spec>
__device__ void RowChain(const typename Spec::Tensors& t) {
  static_assert(Spec::kCluster == 1 ||
                    (Spec::kPitch == 1 && Spec::kLanes == Spec::kThreads &&
                     Spec::kRowLength % (Spec::kCluster * Spec::kVector) == 0),
                "Blocks of a cluster have as many whole vectors of one row.");
  static_assert(
      Spec::kThreads % Spec::kLanes == 0 &&
          (Spec::kLanes & (Spec::kLanes - 1)) == 0,
      "The lanes of a row are a power of two that divides the block.");
  static_assert(
      (Spec::kPitch > 1 ? Spec::kPitch : Spec::kRowLength) % Spec::kVector == 0,
      "Vectors must not cross the end of a row or a strip.");
  constexpr int kKeptBytes = ChainPart<Spec>::kSteps * Spec::kThreads *
                             Spec::kVector * Spec::kKeptBytes;
  if constexpr (Spec::kDynamicShared) {
    extern __shared__ float4 dynamic_shared[];
    KeepChain<Spec>(t, reinterpret_cast<unsigned char*>(dynamic_shared));
  } else {
    alignas(16)
        __shared__ unsigned char static_shared[kKeptBytes > 0 ? kKeptBytes : 1];
    KeepChain<Spec>(t, static_shared);
  }
}

}  // namespace kiln
