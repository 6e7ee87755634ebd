// States of reductions that blocks of one launch publish to each other, in
// memory.
//
// What is published is one word of 64 bits, written at once: no flags, no
// atomics. Its upper bit, the tag, differs from that of the launch before: each
// launch writes all of the same words, and before the first they are zero.
//
//   const kiln::Tag tag = kiln::TagAfter(last);
//   ptx::StoreRelaxed(record, kiln::Publish(state, tag));
//   kiln::AwaitRecords(records, count, tag, nothing, words);  // of others
//   kiln::Unpublish(words[0], count, &state);
#ifndef KILN_KERNEL_SOURCES_PUBLISHED_STATES_CUH_
#define KILN_KERNEL_SOURCES_PUBLISHED_STATES_CUH_

#include "ptx_bulk.cuh"
#include "reducers.cuh"

namespace kiln {

// What a launch does. Blocks that wait for each other must all be resident.
// Where they cannot be, launches take turns, in which no block waits for
// another. As many blocks as that behind each other, of which only the first
// works, say so.
enum class Turn : unsigned {
  kAll = 1,      // everything; finds what the turns before have left
  kPublish = 2,  // states are published, and no more
  kGather = 3,   // totals are (row_exchange.cuh)
};

__device__ inline Turn ThisTurn() { return static_cast<Turn>(gridDim.y); }

// The upper bit of a record, and no other.
using Tag = unsigned long long;
constexpr Tag kTagBit = 1ull << 63;

// That of the launch behind one whose tag is left in `last`.
__device__ inline Tag TagAfter(unsigned long long last) {
  return (last & kTagBit) ^ kTagBit;
}

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

// Waits for every kApart-th of the first `count` words behind `records`, which
// are those of a lane; the warp's lanes wait together. A lane that has fewer
// gets `nothing` for them.
template <int kApart = 32, int kRecords>
__device__ void AwaitRecords(const unsigned long long* records, int count,
                             Tag tag, unsigned long long nothing,
                             unsigned long long (&words)[kRecords]) {
#pragma unroll
  for (int k = 0; k < kRecords; ++k) {
    words[k] = kApart * k < count ? tag ^ kTagBit : nothing;
  }
  bool is_missing = true;
#pragma unroll 1
  while (is_missing) {
    is_missing = false;
#pragma unroll
    for (int k = 0; k < kRecords; ++k) {
      ptx::LoadRelaxedIf(!IsThere(words[k], tag), records + kApart * k,
                         &words[k]);
      is_missing |= !IsThere(words[k], tag);
    }
    is_missing = __any_sync(~0u, is_missing);
  }
}

// Merges the states behind a lane's words; count_of(k) values are behind the
// k-th. A loop, since the code of a merge is long.
template <typename Reducer, int kRecords, typename CountOf>
__device__ Reducer MergeRecords(unsigned long long (&words)[kRecords],
                                CountOf count_of) {
  Reducer total;
#pragma unroll 1
  for (int k = 0; k < kRecords; ++k) {
    Reducer state;
    Unpublish(words[0], static_cast<float>(count_of(k)), &state);
    total.Merge(state);
#pragma unroll
    for (int i = 1; i < kRecords; ++i) words[i - 1] = words[i];
  }
  return total;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_PUBLISHED_STATES_CUH_
