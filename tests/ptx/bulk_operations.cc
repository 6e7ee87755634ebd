// Asynchronous copies, the barriers that count them, and clusters (PTX ISA,
// sections "Asynchronous copy", "mbarrier" and "barrier.cluster"). Copies
// are done as late as may be: those that a barrier counts when all warps have
// run as far as they can, or where warps are interrupted at random, in any
// order from then on; the others when a thread waits for them.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "tests/ptx/access.h"

namespace kiln::ptx {
namespace {

// What an mbarrier object holds; the layout is opaque to programs.
struct BarrierState {
  uint64_t pending : 20;   // arrivals until the phase ends
  uint64_t arrivals : 20;  // of each phase
  uint64_t phase : 1;
  int64_t bytes : 23;  // that are expected and have not arrived
};
static_assert(sizeof(BarrierState) == 8);

constexpr uint64_t kMaxArrivals = (1 << 20) - 1;

// Changes a barrier by `change` and ends its phase if that was the last thing
// it waited for.
template <typename Change>
void ChangeBarrier(Grid* grid, std::byte* place, Change change) {
  BarrierState state;
  std::memcpy(&state, place, sizeof(state));
  change(state);
  if (state.pending == 0 && state.bytes == 0) {
    state.phase ^= 1;
    state.pending = state.arrivals;
  }
  std::memcpy(place, &state, sizeof(state));
  ++grid->progress;
}

// The initialised barrier at an address. Fails and returns null otherwise.
std::byte* FindBarrier(Warp& warp, const Instruction& i, int lane,
                       const Place* operand) {
  std::byte* const place =
      FindIn<Space::kShared>(warp, i, lane, AddressOf(warp, operand, lane),
                             sizeof(BarrierState), sizeof(BarrierState), true);
  if (place == nullptr) return nullptr;
  BarrierState state;
  std::memcpy(&state, place, sizeof(state));
  if (state.arrivals != kMaxArrivals) {
    CheckOrder(warp, i, lane, Access::kRead, place, sizeof(state));
    return place;
  }
  Fail(warp, i, lane, "the barrier is not initialised");
  return nullptr;
}

int64_t OffsetOf(const Block& block, const std::byte* place) {
  return place - block.shared.data();
}

void InitBarrier(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int lane) {
    std::byte* const place =
        Find(warp, i, lane, Space::kShared, AddressOf(warp, i.operands, lane),
             sizeof(BarrierState), sizeof(BarrierState), true);
    if (place == nullptr) return;
    CheckOrder(warp, i, lane, Access::kWrite, place, sizeof(BarrierState));
    const auto arrivals =
        Get<uint32_t>(Source(warp, i.operands[kAddressPlaces]), lane);
    if (arrivals == 0 || arrivals >= kMaxArrivals) {
      return Fail(warp, i, lane, "the number of arrivals is out of range");
    }
    BarrierState state{};
    state.pending = arrivals;
    state.arrivals = arrivals;
    std::memcpy(place, &state, sizeof(state));
  });
  ++warp.grid->progress;
}

// `place`: of the barrier; null if it was not found.
void ArriveAtPlace(Warp& warp, const Instruction& i, int lane, uint32_t bytes,
                   std::byte* place) {
  if (place == nullptr) return;
  warp.block->races.Release(warp.index, OffsetOf(*warp.block, place));
  ChangeBarrier(warp.grid, place, [&](BarrierState& state) {
    state.bytes = state.bytes + bytes;
    if (state.pending == 0) {
      return Fail(warp, i, lane, "more threads arrive than are expected");
    }
    state.pending = state.pending - 1;
  });
}

void ArriveAt(Warp& warp, const Instruction& i, int lane, uint32_t bytes,
              const Place* barrier) {
  ArriveAtPlace(warp, i, lane, bytes, FindBarrier(warp, i, lane, barrier));
}

void Arrive(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int lane) { ArriveAt(warp, i, lane, 0, i.operands + 1); });
}

void ArriveExpecting(Warp& warp, const Instruction& i, uint32_t mask) {
  const Place bytes = i.operands[1 + kAddressPlaces];
  ForLanes(mask, [&](int lane) {
    ArriveAt(warp, i, lane, Get<uint32_t>(Source(warp, bytes), lane),
             i.operands + 1);
  });
}

// True if the phase of this parity has ended. Lanes mostly ask the same.
void TryWait(Warp& warp, const Instruction& i, uint32_t mask) {
  const Place* const address = i.operands + 1;
  const std::byte* const parities =
      Source(warp, i.operands[1 + kAddressPlaces]);
  std::optional<std::pair<uint64_t, uint32_t>> last;
  bool has_ended = false;
  uint32_t ended = 0;
  ForLanes(mask, [&](int lane) {
    const std::pair asked(AddressOf(warp, address, lane),
                          Get<uint32_t>(parities, lane) & 1);
    if (last != asked) {
      const std::byte* const place = FindBarrier(warp, i, lane, address);
      if (place == nullptr) return;
      BarrierState state;
      std::memcpy(&state, place, sizeof(state));
      last = asked;
      has_ended = state.phase != asked.second;
      if (has_ended) {
        warp.block->races.Acquire(warp.index, OffsetOf(*warp.block, place));
      }
    }
    ended |= static_cast<uint32_t>(has_ended) << lane;
  });
  PutMask(warp, i.operands[0], mask, ended);
}

void BulkCopy(Warp& warp, const Instruction& i, uint32_t mask) {
  constexpr uint64_t kAlign = 16;
  const Place* const from_operand = i.operands + kAddressPlaces;
  const Place size_operand = i.operands[2 * kAddressPlaces];
  const Place* const barrier_operand = i.operands + 2 * kAddressPlaces + 1;
  ForLanes(mask, [&](int lane) {
    Copy copy;
    copy.size = Get<uint32_t>(Source(warp, size_operand), lane);
    copy.read = copy.size;
    if (copy.size % kAlign != 0 || copy.size == 0) {
      return Fail(warp, i, lane, "the size is no multiple of 16");
    }
    // A block copies to its own memory alone.
    copy.to = Find(warp, i, lane, Space::kShared,
                   AddressOf(warp, i.operands, lane), copy.size, kAlign, true);
    copy.from =
        Find(warp, i, lane, Space::kGlobal, AddressOf(warp, from_operand, lane),
             copy.size, kAlign, false);
    copy.barrier = FindBarrier(warp, i, lane, barrier_operand);
    if (!warp.grid->error.empty()) return;
    copy.block = warp.block;
    const int other = warp.block->races.BeginCopy(
        warp.index, OffsetOf(*warp.block, copy.to), copy.size, &copy.time);
    if (other >= 0) {
      return Fail(
          warp, i, lane,
          fmt::format("warp {} may still use what the copy overwrites", other));
    }
    warp.grid->copies.push_back(copy);
  });
  ++warp.grid->progress;
}

void EndCopy(const Copy& copy) {
  std::memset(copy.to, 0, copy.size);
  if (copy.read > 0) std::memcpy(copy.to, copy.from, copy.read);
}

// The rest of the bytes, if the source is shorter, is zero: of more operands
// than kSize the fourth. A hint for caches, which there are none of, comes
// last.
template <int kSize = 3>
void CopyAsync(Warp& warp, const Instruction& i, uint32_t mask) {
  const Place* const rest = i.operands + 2 * kAddressPlaces;
  ForLanes(mask, [&](int lane) {
    Copy copy;
    copy.size = Get<uint32_t>(Source(warp, rest[0]), lane);
    copy.read = i.count > kSize ? Get<uint32_t>(Source(warp, rest[1]), lane)
                                : copy.size;
    copy.read = std::min(copy.read, copy.size);
    copy.to =
        FindIn<Space::kShared>(warp, i, lane, AddressOf(warp, i.operands, lane),
                               copy.size, copy.size, true);
    if (copy.read > 0) {
      copy.from = FindIn<Space::kGlobal>(
          warp, i, lane, AddressOf(warp, i.operands + kAddressPlaces, lane),
          copy.read, copy.size, false);
    }
    if (!warp.grid->error.empty()) return;
    CheckOrder(warp, i, lane, Access::kWrite, copy.to, copy.size);
    copy.group = warp.copy_group[lane];
    warp.copies[lane].push_back(copy);
  });
}

void CommitCopies(Warp& warp, const Instruction&, uint32_t mask) {
  ForLanes(mask, [&](int lane) { ++warp.copy_group[lane]; });
}

// Ends the copies of a lane's groups below `end`.
void EndCopies(Warp& warp, const Instruction& i, int lane, int64_t end) {
  std::vector<Copy>& copies = warp.copies[lane];
  auto copy = copies.begin();
  for (; copy != copies.end() && copy->group < end; ++copy) {
    EndCopy(*copy);
    CheckOrder(warp, i, lane, Access::kWrite, copy->to, copy->size);
  }
  copies.erase(copies.begin(), copy);
  ++warp.grid->progress;
}

void WaitForCopies(Warp& warp, const Instruction& i, uint32_t mask) {
  const std::byte* const pending = Source(warp, i.operands[0]);
  ForLanes(mask, [&](int lane) {
    EndCopies(warp, i, lane,
              warp.copy_group[lane] - Get<uint32_t>(pending, lane));
  });
}

void WaitForAllCopies(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int lane) {
    EndCopies(warp, i, lane, ++warp.copy_group[lane]);
  });
}

// Arrives as soon as the lane's copies have.
void ArriveWithCopies(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int lane) {
    warp.grid->arrivals.push_back({&warp, &i, lane,
                                   FindBarrier(warp, i, lane, i.operands),
                                   std::exchange(warp.copies[lane], {})});
  });
  ++warp.grid->progress;
}

void Land(const LateArrival& arrival) {
  Warp& warp = *arrival.warp;
  for (const Copy& copy : arrival.copies) {
    EndCopy(copy);
    CheckOrder(warp, *arrival.instruction, arrival.lane, Access::kWrite,
               copy.to, copy.size);
  }
  ArriveAtPlace(warp, *arrival.instruction, arrival.lane, 0, arrival.barrier);
}

// All, or by `random` some; of a lane's those that began first.
void LandArrivals(Grid* grid, std::mt19937_64* random) {
  constexpr uint64_t kRounds = 4;
  std::set<std::pair<const Warp*, int>> waiting;
  for (const LateArrival& arrival : std::exchange(grid->arrivals, {})) {
    const std::pair lane(arrival.warp, arrival.lane);
    const bool stays = random != nullptr && (*random)() % kRounds != 0;
    if (!stays && waiting.count(lane) == 0) {
      Land(arrival);
      continue;
    }
    waiting.insert(lane);
    grid->arrivals.push_back(arrival);
    ++grid->progress;
  }
}

void MapToRank(Warp& warp, const Instruction& i, uint32_t mask) {
  ForLanes(mask, [&](int lane) {
    const auto address = Get<uint32_t>(Source(warp, i.operands[1]), lane);
    const auto rank = Get<uint32_t>(Source(warp, i.operands[2]), lane);
    constexpr uint32_t kOwn = (1u << kRankShift) - 1;
    Put(Destination(warp, i.operands[0]), lane,
        (address & kOwn) | (rank + 1) << kRankShift);
  });
}

void ClusterArrive(Warp& warp, const Instruction&, uint32_t mask) {
  Cluster* const cluster = warp.block->cluster;
  ForLanes(mask,
           [&](int lane) { warp.cluster_phase[lane] = cluster->phase + 1; });
  cluster->arrived += __builtin_popcount(mask);
  ++warp.grid->progress;
}

// What the warp has written may be read by products.
void FenceProxy(Warp& warp, const Instruction&, uint32_t) {
  warp.block->races.Fence(warp.index);
}

// What has an effect only where memory is not consistent or copies take time.
void DoNothing(Warp&, const Instruction&, uint32_t) {}

}  // namespace

void LandCopies(Grid* grid, std::mt19937_64* random) {
  LandArrivals(grid, random);
  constexpr uint64_t kRounds = 8;  // that a copy takes, in the mean
  for (const Copy& copy : std::exchange(grid->copies, {})) {
    if (random != nullptr && (*random)() % kRounds != 0) {
      grid->copies.push_back(copy);
      ++grid->progress;
      continue;
    }
    EndCopy(copy);
    copy.block->races.EndCopy(OffsetOf(*copy.block, copy.barrier), copy.time);
    ChangeBarrier(grid, copy.barrier, [&](BarrierState& state) {
      state.bytes = state.bytes - copy.size;
    });
  }
}

void AddBulkOperations(OperationTable* table) {
  OperationTable& t = *table;
  t["mbarrier.init.shared::cta.b64"] = {InitBarrier, "aw"};
  t["mbarrier.arrive.shared::cta.b64"] = {Arrive, "da"};
  t["mbarrier.arrive.expect_tx.shared::cta.b64"] = {ArriveExpecting, "daw"};
  t["mbarrier.try_wait.parity.shared::cta.b64"] = {TryWait, "paw", Flow::kTry};
  t["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"] = {
      BulkCopy, "aawa"};
  t["cp.async.cg.shared.global"] = {CopyAsync<>, "aaw?w"};
  t["cp.async.ca.shared.global"] = {CopyAsync<>, "aaw?w"};
  t["cp.async.cg.shared.global.L2::cache_hint"] = {CopyAsync<4>, "aawd"};
  t["cp.async.cg.shared.global.L2::cache_hint.L2::128B"] = {CopyAsync<4>,
                                                            "aawwd"};
  t["createpolicy.fractional.L2::evict_first.b64"] = {DoNothing, "d"};
  t["mapa.shared::cluster.u32"] = {MapToRank, "www"};
  for (const char* release : {"", ".release", ".relaxed"}) {
    t[std::string("barrier.cluster.arrive") + release] = {ClusterArrive, ""};
  }
  t["barrier.cluster.wait"] = {nullptr, "", Flow::kClusterWait};
  t["barrier.cluster.wait.acquire"] = {nullptr, "", Flow::kClusterWait};
  t["fence.proxy.async.shared::cta"] = {FenceProxy, ""};
  t["prefetch.global.L2"] = {DoNothing, "a"};
  t["nanosleep.u32"] = {DoNothing, "w", Flow::kPoll};
  t["cp.async.commit_group"] = {CommitCopies, ""};
  t["cp.async.wait_group"] = {WaitForCopies, "w"};
  t["cp.async.wait_all"] = {WaitForAllCopies, ""};
  t["cp.async.mbarrier.arrive.noinc.shared::cta.b64"] = {ArriveWithCopies, "a"};
  for (const char* name : {"fence.mbarrier_init.release.cluster", "membar.gl",
                           "membar.cta", "fence.acq_rel.gpu", "fence.sc.gpu"}) {
    t[name] = {DoNothing, ""};
  }
}

}  // namespace kiln::ptx
