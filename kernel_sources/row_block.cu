// Normalisation in two touches: each block, or cluster of blocks, reads its
// rows, keeps them in shared memory, and writes the results.
//
//   row statistics = reducer over Spec::Read of the row's elements
//   outputs        = Spec::Element(element, its Spec::Read, statistics)
//
// A row is Spec::kRowLength neighbours in memory. Spec::kLanes threads of each
// of Spec::kCluster blocks work on it; a block holds kThreads / kLanes rows.
// Every thread keeps its own elements in places of its own, so that only the
// statistics are exchanged: in a warp by shuffles, in a block through shared
// memory, in a cluster through its distributed shared memory. Shared memory
// rather than registers, because loops over registers must be unrolled, which
// costs time to compile. No atomics; one fixed order.
//
// Threads load kVector neighbours at once, in one access where the tensors are
// aligned to 16 bytes.
#include "math.cuh"
#include "merge_lanes.cuh"
#include "reducers.cuh"
#include "vectors.cuh"

#if __CUDA_ARCH__ >= 900
#include "ptx_cluster.cuh"
#endif

namespace kiln {

// Where one thread works on its row.
template <typename Spec>
struct RowPart {
  using Index = typename Spec::Index;
  static constexpr Index kSlice =  // elements of each block of a cluster
      (Spec::kRowLength / Spec::kVector + Spec::kCluster - 1) / Spec::kCluster *
      Spec::kVector;

  Index row_begin;   // in memory
  Index begin, end;  // of the block's slice, in the row
  int lane;
  bool is_aligned;  // the tensors are

  __device__ RowPart(const typename Spec::Tensors& t, Index row) {
    is_aligned = Spec::IsAligned(t);
    row_begin = row * Spec::kRowLength;
    begin = static_cast<Index>(blockIdx.x % Spec::kCluster) * kSlice;
    end = min(begin + kSlice, Spec::kRowLength);
    lane = threadIdx.x % Spec::kLanes;
  }
};

// The place of a thread's vector number `step`: 16-byte parts of neighbouring
// threads are neighbours, which keeps the banks free of conflicts.
template <typename Spec>
__device__ float* PlaceOf(float* kept, int step, int part) {
  constexpr int kPart = Spec::kVector < 4 ? Spec::kVector : 4;
  const int row = step * (Spec::kVector / kPart) + part;
  return kept + (row * Spec::kThreads + threadIdx.x) * kPart;
}

template <typename Spec>
__device__ void Keep(const float (&x)[Spec::kVector], int step, float* kept) {
  constexpr int kPart = Spec::kVector < 4 ? Spec::kVector : 4;
#pragma unroll
  for (int part = 0; part < Spec::kVector / kPart; ++part) {
    Vector<float, kPart> vector;
#pragma unroll
    for (int k = 0; k < kPart; ++k) vector.elements[k] = x[part * kPart + k];
    Put(vector, true, PlaceOf<Spec>(kept, step, part), 0);
  }
}

template <typename Spec>
__device__ void Recall(float* kept, int step, float (&x)[Spec::kVector]) {
  constexpr int kPart = Spec::kVector < 4 ? Spec::kVector : 4;
#pragma unroll
  for (int part = 0; part < Spec::kVector / kPart; ++part) {
    Vector<float, kPart> vector;
    Fetch(PlaceOf<Spec>(kept, step, part), 0, true, &vector);
#pragma unroll
    for (int k = 0; k < kPart; ++k) x[part * kPart + k] = vector.elements[k];
  }
}

// Spec::Read of kVector neighbours from position i on.
template <typename Spec>
__device__ void ReadVector(const typename Spec::Tensors& t,
                           typename Spec::Index i, bool is_aligned, float* x) {
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
  typename Spec::template Held<kVector> held;
  const auto first = PointOf<Domain>(i);
  Spec::FetchForRead(t, first, is_aligned, &held);
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    x[k] = Spec::Read(held, VectorPointOf<Domain, kVector>(first, k));
  }
}

// Loads the thread's elements, kAtOnce vectors in flight, and keeps them.
template <typename Spec>
__device__ typename Spec::Reducer ReadRow(const typename Spec::Tensors& t,
                                          const RowPart<Spec>& part,
                                          float* kept) {
  using Index = typename Spec::Index;
  constexpr int kVector = Spec::kVector;
  constexpr Index kStride = Spec::kLanes * kVector;
  constexpr int kSteps =
      static_cast<int>((RowPart<Spec>::kSlice + kStride - 1) / kStride);
  constexpr int kAtOnce = kSteps < Spec::kAtOnce ? kSteps : Spec::kAtOnce;

  typename Spec::Reducer state;
#pragma unroll 1
  for (int step = 0; step < kSteps; step += kAtOnce) {
    const Index first = part.begin + step * kStride + part.lane * kVector;
    float x[kAtOnce * kVector];
    // Past its end, a row's last vector stands in: no branch delays a load.
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const Index at = min(first + k * kStride, Spec::kRowLength - kVector);
      ReadVector<Spec>(t, part.row_begin + at, part.is_aligned,
                       x + k * kVector);
    }
    const bool all_inside = first + (kAtOnce - 1) * kStride < part.end;
    if (all_inside) Take(&state, x);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (first + k * kStride >= part.end) continue;
      float own[kVector];
#pragma unroll
      for (int j = 0; j < kVector; ++j) own[j] = x[k * kVector + j];
      if (!all_inside) Take(&state, own);
      Keep<Spec>(own, step + k, kept);
    }
  }
  return state;
}

// Reducers have constructors, which variables in shared memory must not have.
template <typename Reducer, int kCount>
struct StatesMemory {
  float words[kCount * sizeof(Reducer) / sizeof(float)];
  __device__ Reducer& operator[](int i) {
    return reinterpret_cast<Reducer*>(words)[i];
  }
};

// Merges the states of all lanes of a row within the block, into each.
template <typename Spec>
__device__ void MergeBlock(int lane, typename Spec::Reducer* state) {
  if constexpr (Spec::kLanes <= 32) {
    MergeLanes<Spec::kLanes>(lane, state);
  } else {
    constexpr int kWarps = Spec::kLanes / 32;
    static_assert(kWarps <= 32, "One warp merges those of all.");
    __shared__ StatesMemory<typename Spec::Reducer, Spec::kThreads / 32> states;
    MergeLanes<32>(lane, state);
    if (lane % 32 == 0) states[threadIdx.x / 32] = *state;
    // Every warp of the row has written its state.
    __syncthreads();
    *state = states[threadIdx.x / Spec::kLanes * kWarps + lane % kWarps];
    MergeLanes<kWarps>(lane, state);
  }
}

#if __CUDA_ARCH__ >= 900
// Merges the states of a cluster's blocks, into every thread.
template <typename Spec>
__device__ void MergeCluster(int lane, typename Spec::Reducer* state) {
  using Reducer = typename Spec::Reducer;
  __shared__ StatesMemory<Reducer, 1> own;
  if (threadIdx.x == 0) own[0] = *state;
  // All blocks have written.
  ptx::ClusterArrive();
  ptx::ClusterWait();
  const unsigned from = ptx::MapToRank(own.words, threadIdx.x % Spec::kCluster);
  float* words = reinterpret_cast<float*>(state);
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(Reducer) / sizeof(float)); ++k) {
    words[k] = ptx::LoadFromCluster(from + k * sizeof(float));
  }
  // A block's memory must outlive its readers: waited for at the end.
  ptx::ClusterArrive();
  MergeLanes<Spec::kCluster>(lane, state);
}
#endif

// Spec::Element of the elements that the thread keeps.
template <typename Spec>
__device__ void WriteRow(const typename Spec::Tensors& t,
                         const RowPart<Spec>& part, float* kept,
                         const typename Spec::Statistics& statistics) {
  using Index = typename Spec::Index;
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
  constexpr Index kStride = Spec::kLanes * kVector;
  Index at = part.begin + part.lane * kVector;
#pragma unroll 1
  for (int step = 0; at < part.end; at += kStride, ++step) {
    float x[kVector];
    Recall<Spec>(kept, step, x);
    typename Spec::template Held<kVector> held;
    const auto first = PointOf<Domain>(part.row_begin + at);
    Spec::FetchForElement(t, first, part.is_aligned, &held);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      Spec::Element(held, VectorPointOf<Domain, kVector>(first, k), x[k],
                    statistics);
    }
    Spec::PutResults(t, first.i, part.is_aligned, held);
  }
}

template <typename Spec>
__device__ void KeepRows(const typename Spec::Tensors& t, float* kept) {
  using Index = typename Spec::Index;
  constexpr int kRowsPerBlock = Spec::kThreads / Spec::kLanes;
  const Index row =
      static_cast<Index>(blockIdx.x / Spec::kCluster) * kRowsPerBlock +
      static_cast<Index>(threadIdx.x / Spec::kLanes);
  // Threads without a row do the last one's work but for the writing, since
  // all must meet at the barriers.
  const RowPart<Spec> part(t, min(row, Spec::kRows - 1));
  typename Spec::Reducer state = ReadRow<Spec>(t, part, kept);
  MergeBlock<Spec>(part.lane, &state);
#if __CUDA_ARCH__ >= 900
  if constexpr (Spec::kCluster > 1) MergeCluster<Spec>(part.lane, &state);
#endif
  if (row < Spec::kRows) {
    WriteRow<Spec>(t, part, kept, Spec::Finish(state));
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (Spec::kCluster > 1) ptx::ClusterWait();
#endif
}

template <typename Spec>
__device__ void RowBlock(const typename Spec::Tensors& t) {
  static_assert(Spec::kThreads % Spec::kLanes == 0 &&
                    (Spec::kLanes & (Spec::kLanes - 1)) == 0,
                "The lanes of a row are a power of two.");
  static_assert(Spec::kCluster == 1 || Spec::kLanes == Spec::kThreads,
                "Blocks of a cluster work on one row.");
  static_assert(Spec::kRowLength % Spec::kVector == 0,
                "Vectors must not cross the end of a row.");
  constexpr int kStride = Spec::kLanes * Spec::kVector;
  constexpr int kKept =
      static_cast<int>((RowPart<Spec>::kSlice + kStride - 1) / kStride *
                       Spec::kVector * Spec::kThreads);
  float* kept;
  if constexpr (Spec::kDynamicShared) {
    extern __shared__ float4 dynamic_shared[];
    kept = reinterpret_cast<float*>(dynamic_shared);
  } else {
    alignas(16) __shared__ float static_shared[kKept];
    kept = static_shared;
  }
  KeepRows<Spec>(t, kept);
}

}  // namespace kiln
