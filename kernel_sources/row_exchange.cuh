// How the blocks of row_team.cu exchange the statistics of a row, in memory
// (published_states.cuh).
//
// Members publish theirs; one of them, another for each row, gathers all and
// publishes the total. (If every member gathered, all would poll the same lines
// of the L2 cache at once, and slow down what they wait for.) Merged in one
// fixed order.
//
//   const kiln::Tag tag = kiln::TakeTag<Spec>(t.records);  // some warps
//   const kiln::Records<Spec> records(t.records, row);
//   ptx::StoreRelaxed(records.members + member, kiln::Publish(state, tag));
//   auto total = kiln::Gather<Spec>(records.members, tag, lane);  // one warp
//   kiln::MergeIntoFirstLane(32, &total);
//   ptx::StoreRelaxed(records.total, kiln::Publish(total, tag));
#ifndef KILN_KERNEL_SOURCES_ROW_EXCHANGE_CUH_
#define KILN_KERNEL_SOURCES_ROW_EXCHANGE_CUH_

#include "published_states.cuh"
#include "row_chunks.cuh"

namespace kiln {

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
  unsigned long long words[kRecords];
  AwaitRecords(members + lane, Spec::kTeam - lane, tag,
               Publish(typename Spec::Reducer(), tag), words);
  return MergeRecords<typename Spec::Reducer>(words, [&](int k) {
    const int member = lane + 32 * k;
    return member < kWhole    ? static_cast<int>(kSlice)
           : member == kWhole ? kRest
                              : 0;
  });
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ROW_EXCHANGE_CUH_
