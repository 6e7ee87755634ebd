// Where threads wait for each other.
#include <algorithm>
#include <numeric>

#include "fmt/format.h"
#include "tests/ptx/machine.h"

namespace kiln::ptx {
namespace {

// Lets the lanes of `mask` go on behind the instruction at which they are.
void Advance(Warp* warp, uint32_t mask) {
  for (int lane = 0; lane < kLanes; ++lane) {
    warp->at[lane] += mask >> lane & 1;
  }
  warp->blocked &= ~mask;
}

}  // namespace

void Machine::MeetMembers(Warp* warp, const Instruction& i, uint32_t mask) {
  const std::byte* const masks = Source(*warp, i.operands[i.member_mask]);
  const uint32_t arrived =
      mask | (warp->blocked & LanesAt(*warp, warp->at[__builtin_ctz(mask)]));
  for (uint32_t rest = mask; rest != 0 && grid_->error.empty();) {
    const int lane = __builtin_ctz(rest);
    const auto members = Get<uint32_t>(masks, lane) & warp->live;
    if ((members >> lane & 1) == 0) {
      return Fail(*warp, i, lane, "the mask of lanes is without the lane");
    }
    rest &= ~members;
    if ((members & ~arrived) == 0) {
      i.handler(*warp, i, members);
      Advance(warp, members);
    } else {
      warp->blocked |= members & mask;
    }
  }
}

void Machine::MeetWarp(Warp* warp, const Instruction& i, uint32_t mask) {
  warp->blocked |= mask;
  const uint32_t arrived =
      warp->blocked & LanesAt(*warp, warp->at[__builtin_ctz(mask)]);
  if (arrived != warp->live) return;
  if (i.flow == Flow::kBarrier) return MeetBlock(warp, i);
  if (i.flow == Flow::kWarpgroup) return MeetWarpgroup(warp, i);
  if (i.handler != nullptr) i.handler(*warp, i, arrived);
  Advance(warp, arrived);
}

// bar.sync and bar.red: behind the result, if any, follow the barrier, the
// number of threads unless these are all, and the predicate.
void Machine::MeetBlock(Warp* warp, const Instruction& i) {
  Block* const block = warp->block;
  const int lane = __builtin_ctz(warp->live);
  const bool reduces = i.handler != nullptr;
  const Place* const operands = i.operands + (reduces ? 1 : 0);
  const int count = i.count - (reduces ? 2 : 0);
  const auto number = Get<uint32_t>(Source(*warp, operands[0]), lane);
  if (number >= block->barriers.size()) {
    return Fail(*warp, i, lane, "there are 16 barriers");
  }
  uint32_t threads = 0;
  if (count == 2) {
    threads = Get<uint32_t>(Source(*warp, operands[1]), lane);
    if (threads % kLanes != 0 || threads == 0) {
      return Fail(*warp, i, lane, "a barrier is of whole warps");
    }
  }
  BlockBarrier& barrier = block->barriers[number];
  if (!barrier.waiting.empty() && barrier.threads != threads) {
    return Fail(*warp, i, lane,
                fmt::format("the barrier is of {} threads, and of {} for those "
                            "that wait",
                            threads, barrier.threads));
  }
  if (reduces) barrier.any |= GetMask(*warp, operands[count]) & warp->live;
  warp->is_waiting = true;
  barrier.waiting.push_back(warp);
  barrier.threads = threads;
  CheckBarrier(block, &barrier);
}

void Machine::CheckBarrier(Block* block, BlockBarrier* barrier) {
  const size_t warps = barrier->threads == 0
                           ? static_cast<size_t>(block->live_warps)
                           : barrier->threads / kLanes;
  if (barrier->waiting.size() < warps) return;
  std::vector<int> numbers;
  for (const Warp* warp : barrier->waiting) numbers.push_back(warp->index);
  block->races.Meet(numbers);
  for (Warp* warp : barrier->waiting) {
    const Instruction& i = program_.code[warp->at[__builtin_ctz(warp->live)]];
    if (i.handler != nullptr) {
      PutMask(*warp, i.operands[0], warp->live, barrier->any != 0 ? ~0u : 0);
    }
    warp->is_waiting = false;
    Advance(warp, warp->live);
  }
  *barrier = {};
  ++grid_->progress;
}

void Machine::MeetWarpgroup(Warp* warp, const Instruction& i) {
  std::vector<Warp*>& waiting =
      warp->block->warpgroups[warp->index / 4].waiting;
  if (warp->live != ~0u) {
    return Fail(*warp, i, 0, "a warpgroup has 128 threads");
  }
  if (!waiting.empty() && waiting[0]->at[0] != warp->at[0]) {
    return Fail(*warp, i, 0,
                fmt::format("another warp of the group is at line {}",
                            program_.code[waiting[0]->at[0]].line));
  }
  warp->is_waiting = true;
  waiting.push_back(warp);
  if (waiting.size() < 4) return;
  std::sort(waiting.begin(), waiting.end(),
            [](const Warp* a, const Warp* b) { return a->index < b->index; });
  if (i.handler != nullptr) i.handler(*waiting[0], i, ~0u);
  for (Warp* member : waiting) {
    member->is_waiting = false;
    Advance(member, ~0u);
  }
  waiting.clear();
  ++grid_->progress;
}

// A phase of the barrier ends in barrier.cluster.arrive, or when those that
// have not arrived leave.
void Machine::WaitForCluster(Warp* warp, const Instruction&, uint32_t mask) {
  Cluster* const cluster = warp->block->cluster;
  if (cluster->arrived > 0 && cluster->arrived >= cluster->live_threads) {
    cluster->arrived = 0;
    for (const std::unique_ptr<Block>& block : cluster->blocks) {
      std::vector<int> all(block->warps.size());
      std::iota(all.begin(), all.end(), 0);
      block->races.Meet(all);
    }
    ++cluster->phase;
    ++grid_->progress;
  }
  uint32_t passed = 0;
  ForLanes(mask, [&](int lane) {
    if (warp->cluster_phase[lane] != cluster->phase + 1) passed |= 1u << lane;
  });
  Advance(warp, passed);
  warp->yielded |= mask & ~passed;
}

}  // namespace kiln::ptx
