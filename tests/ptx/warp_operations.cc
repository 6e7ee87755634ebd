// What the threads of a warp or a block do together (PTX ISA, sections
// "shfl.sync", "vote.sync", "redux.sync", "bar", "ldmatrix" and "stmatrix"),
// and control flow.

#include <cstring>

#include "tests/ptx/access.h"
#include "tests/ptx/integer_functions.h"
#include "tests/ptx/machine.h"

namespace kiln::ptx {
namespace {

enum class Mode : uint8_t { kUp, kDown, kButterfly, kIndex };

// The lane that `lane` reads, or -1: none, and it keeps its own value.
int SourceLane(Mode mode, int lane, uint32_t b, uint32_t clamp_word) {
  const int by = static_cast<int>(b & 31);
  const int clamp = static_cast<int>(clamp_word & 31);
  const int segment = static_cast<int>(clamp_word >> 8 & 31);
  const int last = (lane & segment) | (clamp & ~segment);
  if (mode == Mode::kUp) return lane - by >= last ? lane - by : -1;
  int from = (lane & segment) | (by & ~segment);
  if (mode == Mode::kDown) from = lane + by;
  if (mode == Mode::kButterfly) from = lane ^ by;
  return from <= last ? from : -1;
}

// A lane that does not take part gives poison.
template <Mode kMode>
void Shuffle(Warp& warp, const Instruction& i, uint32_t mask) {
  const std::byte* const values = Source(warp, i.operands[2]);
  const std::byte* const by = Source(warp, i.operands[3]);
  const std::byte* const clamps = Source(warp, i.operands[4]);
  uint32_t results[kLanes];
  uint32_t in_range = 0;
  ForLanes(mask, [&](int lane) {
    const int from = SourceLane(kMode, lane, Get<uint32_t>(by, lane),
                                Get<uint32_t>(clamps, lane));
    if (from >= 0) in_range |= 1u << lane;
    const int chosen = from >= 0 ? from : lane;
    results[lane] =
        (mask >> chosen & 1) != 0 ? Get<uint32_t>(values, chosen) : ~0u;
  });
  std::byte* const to = Destination(warp, i.operands[0]);
  ForLanes(mask, [&](int lane) { Put(to, lane, results[lane]); });
  PutMask(warp, i.operands[1], mask, in_range);
}

void Ballot(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint32_t result = GetMask(warp, i.operands[1]) & mask;
  ForLanes(mask, [&](int lane) {
    Put(Destination(warp, i.operands[0]), lane, result);
  });
}
void VoteAny(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint32_t result = GetMask(warp, i.operands[1]) & mask;
  PutMask(warp, i.operands[0], mask, result != 0 ? ~0u : 0);
}
void VoteAll(Warp& warp, const Instruction& i, uint32_t mask) {
  const uint32_t result = GetMask(warp, i.operands[1]) & mask;
  PutMask(warp, i.operands[0], mask, result == mask ? ~0u : 0);
}

template <typename T, typename Function>
void Reduce(Warp& warp, const Instruction& i, uint32_t mask) {
  const std::byte* const values = Source(warp, i.operands[1]);
  T result = Get<T>(values, __builtin_ctz(mask));
  for (uint32_t rest = mask & (mask - 1); rest != 0; rest &= rest - 1) {
    result = Function::Apply(result, Get<T>(values, __builtin_ctz(rest)));
  }
  ForLanes(mask, [&](int lane) {
    Put(Destination(warp, i.operands[0]), lane, result);
  });
}

// "ldmatrix" and "stmatrix": lane i has the address of row i % 8 of matrix
// i / 8. Of a matrix as it lies a lane has two neighbours of row lane / 4, of a
// turned one those of that column.
constexpr int kMatrixRows = 8;
constexpr uint64_t kRowBytes = 16;

std::byte* RowOfMatrix(Warp& warp, const Instruction& i, const Place* address,
                       int lane, bool writes) {
  std::byte* const row =
      FindIn<Space::kShared>(warp, i, lane, AddressOf(warp, address, lane),
                             kRowBytes, kRowBytes, writes);
  if (row == nullptr) return nullptr;
  CheckOrder(warp, i, lane, writes ? Access::kWrite : Access::kRead, row,
             kRowBytes);
  return row;
}

template <bool kTransposed>
void LoadMatrices(Warp& warp, const Instruction& i, uint32_t) {
  for (int matrix = 0; matrix < i.count; ++matrix) {
    uint16_t numbers[kMatrixRows][kMatrixRows];
    for (int r = 0; r < kMatrixRows; ++r) {
      const std::byte* const row = RowOfMatrix(warp, i, i.operands + i.count,
                                               matrix * kMatrixRows + r, false);
      if (row == nullptr) return;
      std::memcpy(numbers[r], row, kRowBytes);
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      const int pair = lane % 4 * 2;
      const int other = lane / 4;
      const uint32_t upper =
          kTransposed ? numbers[pair + 1][other] : numbers[other][pair + 1];
      const uint32_t lower =
          kTransposed ? numbers[pair][other] : numbers[other][pair];
      Put(Destination(warp, i.operands[matrix]), lane, upper << 16 | lower);
    }
  }
}

void StoreMatrices(Warp& warp, const Instruction& i, uint32_t) {
  for (int matrix = 0; matrix < i.count; ++matrix) {
    const std::byte* const from =
        Source(warp, i.operands[kAddressPlaces + matrix]);
    for (int r = 0; r < kMatrixRows; ++r) {
      std::byte* const row =
          RowOfMatrix(warp, i, i.operands, matrix * kMatrixRows + r, true);
      if (row == nullptr) return;
      for (int lane = 4 * r; lane < 4 * r + 4; ++lane) {
        const auto both = Get<uint32_t>(from, lane);
        std::memcpy(row + lane % 4 * sizeof(both), &both, sizeof(both));
      }
    }
  }
  ++warp.grid->progress;
}

void ActiveMask(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int lane) {
    Put(Destination(warp, i.operands[0]), lane, mask);
  });
}

void DoNothing(Warp&, const Instruction&, uint32_t) {}

void AddShuffles(OperationTable* table) {
  constexpr uint8_t kMask = 5;
  const auto shuffle = [](Handler handler) {
    return Operation{handler, "qwwww", Flow::kMembers, 1, kMask};
  };
  OperationTable& t = *table;
  t["shfl.sync.up.b32"] = shuffle(Shuffle<Mode::kUp>);
  t["shfl.sync.down.b32"] = shuffle(Shuffle<Mode::kDown>);
  t["shfl.sync.bfly.b32"] = shuffle(Shuffle<Mode::kButterfly>);
  t["shfl.sync.idx.b32"] = shuffle(Shuffle<Mode::kIndex>);
}

void AddReductions(OperationTable* table) {
  const auto reduction = [](Handler handler) {
    return Operation{handler, "www", Flow::kMembers, 1, 2};
  };
  OperationTable& t = *table;
  t["redux.sync.max.u32"] = reduction(Reduce<uint32_t, Maximum>);
  t["redux.sync.min.u32"] = reduction(Reduce<uint32_t, Minimum>);
  t["redux.sync.max.s32"] = reduction(Reduce<int32_t, Maximum>);
  t["redux.sync.min.s32"] = reduction(Reduce<int32_t, Minimum>);
  t["redux.sync.add.u32"] = reduction(Reduce<uint32_t, Add>);
  t["redux.sync.add.s32"] = reduction(Reduce<uint32_t, Add>);
  t["redux.sync.and.b32"] = reduction(Reduce<uint32_t, And>);
  t["redux.sync.or.b32"] = reduction(Reduce<uint32_t, Or>);
}

}  // namespace

void AddWarpOperations(OperationTable* table) {
  AddShuffles(table);
  AddReductions(table);
  OperationTable& t = *table;
  t["vote.sync.ballot.b32"] = {Ballot, "wpw", Flow::kMembers, 1, 2};
  t["vote.sync.any.pred"] = {VoteAny, "ppw", Flow::kMembers, 1, 2};
  t["vote.sync.all.pred"] = {VoteAll, "ppw", Flow::kMembers, 1, 2};
  t["bar.warp.sync"] = {DoNothing, "w", Flow::kMembers, 1, 0};
  t["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] = {LoadMatrices<true>,
                                                         "va", Flow::kWarp, 4};
  t["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] = {LoadMatrices<false>, "va",
                                                   Flow::kWarp, 4};
  t["stmatrix.sync.aligned.m8n8.x4.shared.b16"] = {StoreMatrices, "av",
                                                   Flow::kWarp, 4};
  t["activemask.b32"] = {ActiveMask, "w"};
  t["bar.sync"] = {nullptr, "w?w", Flow::kBarrier};
  t["barrier.sync"] = {nullptr, "w?w", Flow::kBarrier};
  // The machine computes the result.
  t["bar.red.or.pred"] = {DoNothing, "pw?p", Flow::kBarrier};
  t["barrier.cta.red.or.aligned.pred"] = {DoNothing, "pww?p", Flow::kBarrier};
  t["setmaxnreg.dec.sync.aligned.u32"] = {nullptr, "w", Flow::kWarpgroup};
  t["setmaxnreg.inc.sync.aligned.u32"] = {nullptr, "w", Flow::kWarpgroup};
  t["wgmma.fence.sync.aligned"] = {nullptr, "", Flow::kWarp};
  t["bra"] = {nullptr, "", Flow::kBranch};
  t["bra.uni"] = {nullptr, "", Flow::kBranch};
  t["ret"] = {nullptr, "", Flow::kExit};
  t["exit"] = {nullptr, "", Flow::kExit};
}

}  // namespace kiln::ptx
