// Several reductions over the same rows, one computed of another or all of the
// same elements, and what is computed of them, in two touches: each block reads
// its rows, keeps them in shared memory, and writes the results.
//
//   for each link:  statistics += Spec::Finish(StateOf(link) over
//                                              Spec::Value(element,
//                                              statistics))
//   links up to Spec::EndOfPass(link), of which none needs another's
//   statistics, are taken in one pass over the elements
//   outputs         = Spec::Element(element, statistics)
//   outputs of rows = Spec::RowElement(statistics)
//
// A row is Spec::kRowLength elements, Spec::kPitch apart, or runs of Spec::kRun
// neighbours with those of all other rows between them. Where the pitch is 1,
// Spec::kLanes neighbouring threads share a row; else rows lie side by side,
// threads next to each other have the next ones, and Spec::kLanes threads above
// each other share theirs. Where one block has no room for a row,
// Spec::kCluster blocks share it, and a link may be of a part of it that whole
// blocks have: a norm of fewer channels before one of more. Tensors of which
// links are made are copied to places that the thread alone uses, as they are,
// so that nothing but statistics is exchanged. Where one pass is all there is
// (not Spec::kKeeps), elements are used as they come; where blocks share a row
// then (Spec::kSplits), they are no cluster: RowChain leaves their states in
// t.partials, and MergeChain finishes. No atomics; one fixed order.
#include "async_copy.cuh"
#include "chain_part.cuh"
#include "link_states.cuh"
#include "math.cuh"
#include "merge_block.cuh"
#include "merge_columns.cuh"
#include "opaque.cuh"
#include "reducers.cuh"
#include "vectors.cuh"

#if __CUDA_ARCH__ >= 900
#include "merge_cluster.cuh"
#endif

namespace kiln {

// Of a thread's steps, Spec::kAtOnce at a time.
template <typename Spec>
constexpr int kRounds =
    (ChainPart<Spec>::kSteps + Spec::kAtOnce - 1) / Spec::kAtOnce;

// Where the vector of one of the thread's steps is kept: neighbouring threads'
// places are neighbours.
template <typename Spec>
__device__ int PlaceOf(int step) {
  return (step * Spec::kThreads + static_cast<int>(threadIdx.x)) *
         Spec::kVector;
}

// Starts the copies of the thread's elements, a group for each round.
template <typename Spec>
__device__ void CopyChain(const typename Spec::Tensors& t,
                          const ChainPart<Spec>& part,
                          const typename Spec::Kept& kept) {
  const int steps = part.steps();
#pragma unroll 1
  for (int round = 0; round < kRounds<Spec>; ++round) {
#pragma unroll
    for (int k = 0; k < Spec::kAtOnce; ++k) {
      const int step = round * Spec::kAtOnce + k;
      if (step < steps) {
        Spec::BeginCopies(t, part.PositionOf(step), part.is_aligned,
                          PlaceOf<Spec>(step), kept);
      }
    }
    CommitCopies();
  }
}

// Loads the elements of one round, all before the first is used. Past its end
// the last step stands in: no branch delays a load.
template <typename Spec, typename Held>
__device__ void FetchRound(const typename Spec::Tensors& t,
                           const ChainPart<Spec>& part, int begin, int count,
                           Held (&held)[Spec::kAtOnce]) {
  const auto fetch = [&](bool is_aligned) {
#pragma unroll
    for (int k = 0; k < Spec::kAtOnce; ++k) {
      const int step = begin + min(k, count - 1);
      Spec::FetchForRead(t, part.PointOfStep(step), is_aligned, &held[k]);
    }
  };
  if (part.is_aligned) {
    fetch(true);
  } else {
    fetch(false);
  }
}

// Takes the values of a pass's links, kLink to kEnd, of the thread's elements
// of one round, the `count` steps from `begin` on; there may be fewer, or none.
template <typename Spec, int kLink, int kEnd, typename States>
__device__ void TakeRound(const typename Spec::Tensors& t,
                          const ChainPart<Spec>& part,
                          const typename Spec::Kept& kept, int begin, int count,
                          const typename Spec::Statistics* rows,
                          States* states) {
  using Part = ChainPart<Spec>;
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
  constexpr int kAtOnce = Spec::kAtOnce;
  typename Spec::template Held<kVector> held[kAtOnce];
  float x[kEnd - kLink][Part::kRows][kAtOnce * Part::kAlong];
  if constexpr (!Spec::kKeeps) FetchRound<Spec>(t, part, begin, count, held);
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    if (Spec::kKeeps && k >= count) continue;
    const int step = begin + (Spec::kKeeps ? k : min(k, count - 1));
    const auto first = part.PointOfStep(step);
    if constexpr (Spec::kKeeps) {
      Spec::Recall(kept, PlaceOf<Spec>(step), &held[k]);
      Spec::FetchForRead(t, first, part.is_aligned, &held[k]);
    }
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      const int row = Part::kSideBySide ? j : 0;
      float values[kEnd - kLink];
      ValuesOfLinks<Spec, kLink, kEnd>(
          held[k], VectorPointOf<Domain, kVector>(first, j), rows[row], values);
#pragma unroll
      for (int link = 0; link < kEnd - kLink; ++link) {
        x[link][row][k * Part::kAlong + j % Part::kAlong] = values[link];
      }
    }
  }
#pragma unroll
  for (int row = 0; row < Part::kRows; ++row) {
    TakeLinks<Part::kAlong>(count, row, x, &states[row]);
  }
}

// Memory of a block for the states of each thread's rows that lie side by side.
template <typename Spec>
__device__ float* SharedStates() {
  __shared__ float words[Spec::kStateWords * Spec::kThreads * Spec::kVector];
  return words;
}

// Merges what the threads of each row, or of the part of it that the link is
// of, have taken for a pass that begins with it.
template <typename Spec, int kLink, typename States>
__device__ void MergePass(States* states) {
  if constexpr (ChainPart<Spec>::kSideBySide) {
    static_assert(sizeof(States) <= Spec::kStateWords * sizeof(float),
                  "There is no more room.");
    MergeColumns<Spec::kThreads, Spec::kLanes, Spec::kVector>(
        SharedStates<Spec>(), states);
  } else {
    MergeBlock<Spec::kThreads, Spec::kLanes>(threadIdx.x % Spec::kLanes,
                                             states);
    // All have read before another pass is merged in the same memory.
    if constexpr (Spec::kLanes > 32) __syncthreads();
#if __CUDA_ARCH__ >= 900
    constexpr int kBlocks = Spec::BlocksOf(Link<kLink>());
    if constexpr (kBlocks > 1 && !Spec::kSplits) {
      MergeCluster<kBlocks>(ChainPart<Spec>::rank(), states);
      // All have read, before a block ends or merges another pass.
      ptx::ClusterWait();
    }
#endif
  }
}

// Takes the values of a pass's links of all of the thread's elements.
template <typename Spec, int kLink, int kEnd, typename States>
__device__ void TakePass(const typename Spec::Tensors& t,
                         const ChainPart<Spec>& part,
                         const typename Spec::Kept& kept,
                         const typename Spec::Statistics* rows,
                         States* states) {
  constexpr bool kWaits = Spec::kKeeps && kLink == 0;
  constexpr bool kIsWhole = ChainPart<Spec>::kSteps % Spec::kAtOnce == 0 &&
                            ChainPart<Spec>::kHasWholeSteps;
  const int steps = part.steps();
  const int rounds = Spec::kKeeps ? kRounds<Spec>
                                  : (steps + Spec::kAtOnce - 1) / Spec::kAtOnce;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const int begin = round * Spec::kAtOnce;
    // Of the groups of copies, this round's has arrived.
    if constexpr (kWaits) WaitForCopies<kRounds<Spec> - 1>();
    TakeRound<Spec, kLink, kEnd>(t, part, kept, begin,
                                 kIsWhole ? Spec::kAtOnce : steps - begin, rows,
                                 states);
    if constexpr (kWaits) CommitCopies();
  }
}

// Computes the statistics of the links from kLink on.
template <typename Spec, int kLink>
__device__ void CountLinks(const typename Spec::Tensors& t,
                           const ChainPart<Spec>& part,
                           const typename Spec::Kept& kept,
                           typename Spec::Statistics* rows) {
  if constexpr (kLink < Spec::kLinks) {
    constexpr int kEnd = Spec::EndOfPass(Link<kLink>());
    StatesOfLinks<Spec, kLink, kEnd> states[ChainPart<Spec>::kRows];
    TakePass<Spec, kLink, kEnd>(t, part, kept, rows, states);
    MergePass<Spec, kLink>(states);
#pragma unroll
    for (int row = 0; row < ChainPart<Spec>::kRows; ++row) {
      FinishLinks<Spec, kLink, kEnd>(states[row], &rows[row]);
    }
    CountLinks<Spec, kEnd>(t, part, kept, rows);
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
  static_assert(Spec::kKeeps, "Results are made of what is kept.");
  const int steps = part.steps();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const auto first = part.PointOfStep(step);
    typename Spec::template Held<kVector> held;
    Spec::Recall(kept, PlaceOf<Spec>(step), &held);
    Spec::FetchForElement(t, first, part.is_aligned, &held);
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      Spec::Element(held, VectorPointOf<Domain, kVector>(first, j),
                    rows[Part::kSideBySide ? j : 0]);
    }
    Spec::PutResults(t, first.i, Opaque(part.is_aligned), held);
  }
}

// Where blocks leave states: those of all links, of a row side by side.
template <typename Spec>
__device__ auto StatesInMemory(const typename Spec::Tensors& t) {
  using States = StatesOfLinks<Spec, 0, Spec::kLinks>;
  static_assert(sizeof(States) == Spec::kStateWords * sizeof(float),
                "The workspace is laid out for this.");
  return reinterpret_cast<States*>(t.partials);
}

// Takes the only pass over the block's part of a row.
template <typename Spec>
__device__ void SplitChain(const typename Spec::Tensors& t,
                           const ChainPart<Spec>& part,
                           const typename Spec::Kept& kept) {
  static_assert(Spec::EndOfPass(Link<0>()) == Spec::kLinks && !Spec::kKeeps,
                "Of several passes, the second needs what the first gives.");
  StatesOfLinks<Spec, 0, Spec::kLinks> states[1];
  const typename Spec::Statistics rows[1] = {};
  TakePass<Spec, 0, Spec::kLinks>(t, part, kept, rows, states);
  MergePass<Spec, 0>(states);
  if (threadIdx.x > 0) return;
  StatesInMemory<Spec>(t)[part.row * Spec::kCluster + part.rank()] = states[0];
}

template <typename Spec>
__device__ void KeepChain(const typename Spec::Tensors& t,
                          unsigned char* memory) {
  using Part = ChainPart<Spec>;
  const Part part(t);
  const typename Spec::Kept kept = Spec::KeptIn(memory);
  if constexpr (Spec::kSplits) return SplitChain<Spec>(t, part, kept);
  if constexpr (Spec::kKeeps) CopyChain<Spec>(t, part, kept);
  typename Spec::Statistics rows[Part::kRows];
  CountLinks<Spec, 0>(t, part, kept, rows);
  if (!part.is_inside) return;
  if constexpr (Spec::kWritesElements) WriteChain<Spec>(t, part, kept, rows);
  if constexpr (Spec::kWritesRows) WriteNumbers<Spec>(t, part, rows);
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
      (Spec::kPitch > 1 ? Spec::kPitch : Spec::kRun) % Spec::kVector == 0,
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

// Second kernel where Spec::kSplits, of Spec::kMergeThreads: Spec::kCluster
// neighbouring threads for each row, of which each has a block's states.
template <typename Spec>
__device__ void MergeChain(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  const Index at = GridStart<Index>();
  const Index row = at / Spec::kCluster;
  const bool is_inside = row < Spec::kRows;
  auto states = StatesInMemory<Spec>(t)[is_inside ? at : at % Spec::kCluster];
  MergeBlock<Spec::kMergeThreads, Spec::kCluster>(at % Spec::kCluster, &states);
  if (!is_inside || at % Spec::kCluster > 0) return;
  typename Spec::Statistics numbers;
  FinishLinks<Spec, 0, Spec::kLinks>(states, &numbers);
  Spec::RowElement(t, PointOf<typename Spec::RowDomain>(row), numbers);
}

}  // namespace kiln
