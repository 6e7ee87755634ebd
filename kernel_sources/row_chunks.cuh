// Chunks of the rows of row_team.cu: where they lie in memory and in the ring,
// and how they come there.
//
//   const kiln::Chunk<Spec> chunk(row, k);
//   kiln::LoadChunk<Spec>(t, ring + chunk.slot * Spec::kSlotBytes, chunk,
//                         is_aligned, lane, &loaded[chunk.slot]);
#ifndef KILN_KERNEL_SOURCES_ROW_CHUNKS_CUH_
#define KILN_KERNEL_SOURCES_ROW_CHUNKS_CUH_

#include "opaque.cuh"
#include "ptx_bulk.cuh"

namespace kiln {

// Blocks in order make teams of Spec::kTeam; rows are dealt out to Spec::kTeams
// of them in turn, and counted by each team from 0 on.
template <typename Spec>
__device__ unsigned TeamOfBlock() {
  return Spec::kTeams == 1 ? 0 : blockIdx.x / Spec::kTeam;
}
template <typename Spec>
__device__ unsigned MemberOfTeam() {
  return Spec::kTeams == 1 ? blockIdx.x : blockIdx.x % Spec::kTeam;
}
// Of all rows, that which is `row` for this block's team; backwards as in
// BlockInMemory.
template <typename Spec>
__device__ unsigned RowOfAll(unsigned row) {
  const unsigned number = row * Spec::kTeams + TeamOfBlock<Spec>();
  constexpr auto kLast = static_cast<unsigned>(Spec::kRows - 1);
  return Spec::kBackwards ? kLast - number : number;
}
// How many rows this block's team has.
template <typename Spec>
__device__ int RowsOfTeam() {
  constexpr int kRows = static_cast<int>(Spec::kRows);
  if constexpr (Spec::kTeams == 1) return kRows;
  return (kRows - static_cast<int>(TeamOfBlock<Spec>()) + Spec::kTeams - 1) /
         Spec::kTeams;
}

// Chunk k of this block's slice of its team's `row`: which part of memory,
// which place.
template <typename Spec>
struct Chunk {
  using Index = typename Spec::Index;
  unsigned slot;
  unsigned parity;  // of the place's barriers
  Index begin;      // in memory
  int count;        // of elements; 0 past the end of the row

  __device__ Chunk(unsigned row, unsigned k) {
    const unsigned number = row * Spec::kChunks + k;
    slot = Opaque(number % Spec::kSlots);
    parity = Opaque(number / Spec::kSlots % 2);
    const Index in_row =
        static_cast<Index>(MemberOfTeam<Spec>() * Spec::kChunks + k) *
        Spec::kChunk;
    begin = Opaque(static_cast<Index>(RowOfAll<Spec>(row)) * Spec::kRowLength +
                   in_row);
    const Index rest = Spec::kRowLength - in_row;
    count = Opaque(static_cast<int>(max(
        min(rest, static_cast<Index>(Spec::kChunk)), static_cast<Index>(0))));
  }
};

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
__device__ void LoadChunk(const typename Spec::Tensors& t, unsigned char* slot,
                          const Chunk<Spec>& chunk, bool is_aligned, int lane,
                          ptx::Barrier* loaded) {
  using Index = typename Spec::Index;
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

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ROW_CHUNKS_CUH_
