// How the blocks of row_team.cu exchange the statistics of a row, in memory.
//
// Members publish theirs; one of them, another for each row, gathers all and
// publishes the total. (If every member gathered, all would poll the same lines
// of the L2 cache at once, and slow down what they wait for.) What is published
// is one word of 64 bits, written at once: no flags, no atomics, and one fixed
// order. Its upper bit, the tag, differs from that of the launch before: each
// launch writes all of the same words, and before the first they are zero.
//
//   const kiln::Tag tag = kiln::TakeTag<Spec>(t.records);  // some warps
//   const kiln::Records<Spec> records(t.records, row);
//   ptx::StoreRelaxed(records.members + member, kiln::Publish(state, tag));
//   auto total = kiln::Gather<Spec>(records.members, tag, lane);  // one warp
//   kiln::MergeIntoFirstLane(32, &total);
//   ptx::StoreRelaxed(records.total, kiln::Publish(total, tag));
#ifndef KILN_KERNEL_SOURCES_ROW_EXCHANGE_CUH_
#define KILN_KERNEL_SOURCES_ROW_EXCHANGE_CUH_

#include "ptx_bulk.cuh"
#include "reducers.cuh"
#include "row_chunks.cuh"

namespace kiln {

// The upper bit of a record, and no other.
using Tag = unsigned long long;
constexpr Tag kTagBit = 1ull << 63;

__device__ inline bool IsThere(unsigned long long record, Tag tag) {
  return ((record ^ tag) & kTagBit) == 0;
}

// Two numbers of which the second is never negative: its sign is the tag.
__device__ inline unsigned long long Pack(float first, float second, Tag tag) {
  const unsigned long long high = __float_as_uint(second) & 0x7fffffff;
  return high << 32 | __float_as_uint(first) | tag;
}

__device__ inline unsigned long long Publish(const Moments& state, Tag tag) {
  return Pack(state.mean, state.m2, tag);
}

__device__ inline unsigned long long Publish(const SoftmaxSum& state, Tag tag) {
  return Pack(state.largest, state.scaled.Total(), tag);
}

// The state behind a record over `count` values.
__device__ inline void Unpublish(unsigned long long record, float count,
                                 Moments* state) {
  state->count = count;
  state->mean = __uint_as_float(static_cast<unsigned>(record));
  state->m2 = __uint_as_float(static_cast<unsigned>(record >> 32) & 0x7fffffff);
}

__device__ inline void Unpublish(unsigned long long record, float,
                                 SoftmaxSum* state) {
  state->scaled.error = 0.0f;
  state->largest = __uint_as_float(static_cast<unsigned>(record));
  state->scaled.sum =
      __uint_as_float(static_cast<unsigned>(record >> 32) & 0x7fffffff);
}

// What members exchange about one row, in t.records. Behind all rows' words,
// each member has one with the tag of the launch before.
template <typename Spec>
struct Records {
  unsigned long long* members;  // one for each
  unsigned long long* total;

  __device__ Records(unsigned long long* records, int row) {
    // Totals lie behind the members' words, each in a sector of its own.
    constexpr int kSectorWords = 4;
    constexpr long long kRows = Spec::kRows;
    members = records + static_cast<long long>(row) * Spec::kTeam;
    total = records + kRows * Spec::kTeam + row * kSectorWords;
  }

  static __device__ unsigned long long* LastTag(unsigned long long* records) {
    return Records(records, static_cast<int>(Spec::kRows)).total + blockIdx.x;
  }
};

// The statistics of all members of the team, each merged into those of one of
// a warp's lanes.
template <typename Spec>
__device__ typename Spec::Reducer Gather(const unsigned long long* members,
                                         Tag tag, int lane) {
  constexpr int kRecords = (Spec::kTeam + 31) / 32;  // of each lane
  constexpr long long kSlice =
      static_cast<long long>(Spec::kChunks) * Spec::kChunk;
  // Members with whole slices; the next one has the rest.
  constexpr int kWhole = static_cast<int>(Spec::kRowLength / kSlice);
  constexpr int kRest = static_cast<int>(Spec::kRowLength % kSlice);
  const unsigned long long nothing = Publish(typename Spec::Reducer(), tag);
  const unsigned long long* records = members + lane;
  unsigned long long record[kRecords];
#pragma unroll
  for (int k = 0; k < kRecords; ++k) {
    record[k] = lane + 32 * k < Spec::kTeam ? tag ^ kTagBit : nothing;
  }
  bool is_missing = true;
#pragma unroll 1
  while (is_missing) {
    is_missing = false;
#pragma unroll
    for (int k = 0; k < kRecords; ++k) {
      ptx::LoadRelaxedIf(!IsThere(record[k], tag), records + 32 * k,
                         &record[k]);
      is_missing |= !IsThere(record[k], tag);
    }
  }
  typename Spec::Reducer total;
  // A loop, since the code of a merge is long.
#pragma unroll 1
  for (int k = 0; k < kRecords; ++k) {
    const unsigned long long own = record[0];
#pragma unroll
    for (int i = 1; i < kRecords; ++i) record[i - 1] = record[i];
    const int member = lane + 32 * k;
    const int count = member < kWhole    ? static_cast<int>(kSlice)
                      : member == kWhole ? kRest
                                         : 0;
    typename Spec::Reducer state;
    Unpublish(own, static_cast<float>(count), &state);
    total.Merge(state);
  }
  // Lanes may have left the loop apart.
  __syncwarp();
  return total;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ROW_EXCHANGE_CUH_
