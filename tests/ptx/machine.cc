#include "tests/ptx/machine.h"

#include <algorithm>
#include <cstdio>

#include "fmt/format.h"

namespace kiln::ptx {
namespace {

// Rounds over all warps in which nobody does more than poll. Polls may go over
// some hundred places one after the other.
constexpr int kIdleRounds = 2000;

// Instructions of warps, some minutes: a grid that needs more does not end.
constexpr int64_t kMaxInstructions = int64_t{1} << 34;

// Of a warp, until others run.
constexpr int64_t kLongSlice = int64_t{1} << 20;
constexpr int64_t kMaxRandomSlice = 300;

// No poll takes more instructions of a warp, until it yields.
constexpr int64_t kPollLength = 100;

// Registers and shared memory begin with this in each byte: floats are NaNs.
constexpr std::byte kPoison{0xff};

uint32_t LanesOfWarp(uint32_t threads, int index) {
  const uint32_t rest = threads - std::min<uint32_t>(threads, 32u * index);
  return rest >= 32 ? ~0u : (1u << rest) - 1;
}

uint32_t Product(const std::array<uint32_t, 3>& extents) {
  return extents[0] * extents[1] * extents[2];
}

// Of number `i`, x fastest.
std::array<uint32_t, 3> Position(uint32_t i,
                                 const std::array<uint32_t, 3>& extents) {
  return {i % extents[0], i / extents[0] % extents[1],
          i / extents[0] / extents[1]};
}

// Where the furthest behind of some lanes are; behind all code if there are
// none.
uint32_t FirstPlace(const Warp& warp, uint32_t lanes) {
  if (lanes == 0) return ~0u;
  uint32_t first = ~0u;
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint32_t at = warp.at[lane];
    first = std::min(first, (lanes >> lane & 1) != 0 ? at : ~0u);
  }
  return first;
}

}  // namespace

void Fail(Warp& warp, const Instruction& instruction, int lane,
          const std::string& what) {
  if (!warp.grid->error.empty()) return;
  const std::array<uint32_t, 3>& block = warp.block->number;
  warp.grid->error =
      fmt::format("Line {} of the PTX, block ({}, {}, {}), thread {}: {}.",
                  instruction.line, block[0], block[1], block[2],
                  warp.index * kLanes + lane, what);
}

Machine::Machine(const Program& program, Grid* grid, uint64_t seed)
    : program_(program),
      grid_(grid),
      interrupts_(seed != 0),
      random_(seed),
      budget_(kMaxInstructions) {}

void Machine::Run(int64_t resident) {
  const int64_t size = Product(grid_->cluster);
  const int64_t clusters = Product(grid_->blocks) / size;
  const int64_t at_once = std::max<int64_t>(resident / size, 1);
  int64_t next = 0;
  int idle = 0;
  while (grid_->error.empty()) {
    while (next < clusters &&
           static_cast<int64_t>(resident_.size()) < at_once) {
      Start(next++);
    }
    if (resident_.empty()) return;
    const uint64_t before = grid_->progress;
    for (size_t i = 0; i < resident_.size() && grid_->error.empty();) {
      if (!RunCluster(resident_[i].get())) {
        ++i;
        continue;
      }
      for (std::unique_ptr<Block>& block : resident_[i]->blocks) {
        unused_.push_back(std::move(block));
      }
      resident_.erase(resident_.begin() + i);
    }
    LandCopies(grid_, interrupts_ ? &random_ : nullptr);
    idle = grid_->progress == before ? idle + 1 : 0;
    if (idle > kIdleRounds) return ReportDeadlock();
  }
}

void Machine::Start(int64_t number) {
  const std::array<uint32_t, 3>& size = grid_->cluster;
  const std::array<uint32_t, 3> clusters = {grid_->blocks[0] / size[0],
                                            grid_->blocks[1] / size[1],
                                            grid_->blocks[2] / size[2]};
  const auto first = Position(static_cast<uint32_t>(number), clusters);
  auto cluster = std::make_unique<Cluster>();
  for (uint32_t rank = 0; rank < Product(size); ++rank) {
    std::unique_ptr<Block> block;
    if (unused_.empty()) {
      block = std::make_unique<Block>();
    } else {
      block = std::move(unused_.back());
      unused_.pop_back();
    }
    const auto within = Position(rank, size);
    for (int i = 0; i < 3; ++i) {
      block->number[i] = first[i] * size[i] + within[i];
    }
    block->rank = static_cast<int>(rank);
    block->cluster = cluster.get();
    StartBlock(block.get());
    cluster->live_threads += static_cast<int>(Product(grid_->threads));
    cluster->blocks.push_back(std::move(block));
  }
  resident_.push_back(std::move(cluster));
}

void Machine::StartBlock(Block* block) {
  const uint32_t threads = Product(grid_->threads);
  const int warps = static_cast<int>((threads + kLanes - 1) / kLanes);
  block->shared.assign(program_.shared_bytes, kPoison);
  block->registers.resize(program_.register_bytes * warps, kPoison);
  block->barriers = {};
  block->races.Start(warps, program_.shared_bytes);
  block->live_warps = warps;
  block->warpgroups = std::vector<Warpgroup>((warps + 3) / 4);
  block->warps = std::vector<Warp>(warps);
  for (int i = 0; i < warps; ++i) {
    Warp& warp = block->warps[i];
    warp.grid = grid_;
    warp.block = block;
    warp.index = i;
    warp.registers = block->registers.data() + program_.register_bytes * i;
    warp.constants = program_.constants;
    warp.live = LanesOfWarp(threads, i);
    warp.settled = grid_->overlaps ? 0 : ~0u;
    FillSpecial(block, &warp);
  }
}

void Machine::FillSpecial(Block* block, Warp* warp) {
  std::array<uint32_t, 3> cluster;
  for (int i = 0; i < 3; ++i) {
    cluster[i] = block->number[i] % grid_->cluster[i];
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto thread = static_cast<uint32_t>(warp->index * kLanes + lane);
    const auto position = Position(thread, grid_->threads);
    const uint32_t values[] = {position[0],
                               position[1],
                               position[2],
                               grid_->threads[0],
                               grid_->threads[1],
                               grid_->threads[2],
                               block->number[0],
                               block->number[1],
                               block->number[2],
                               grid_->blocks[0],
                               grid_->blocks[1],
                               grid_->blocks[2],
                               cluster[0],
                               cluster[1],
                               cluster[2],
                               static_cast<uint32_t>(lane),
                               static_cast<uint32_t>(block->rank),
                               static_cast<uint32_t>(warp->index)};
    constexpr size_t kWords = std::size(values);
    for (size_t i = 0; i < kWords; ++i) {
      if (program_.special[i] < 0) continue;
      Put(Destination(*warp, program_.special[i]), lane, values[i]);
    }
    // A clock that stands still.
    const Place clock = program_.special[kWords];
    if (clock >= 0) Put(Destination(*warp, clock), lane, uint64_t{0});
  }
}

bool Machine::RunCluster(Cluster* cluster) {
  const size_t warps = cluster->blocks[0]->warps.size();
  const size_t count = cluster->blocks.size() * warps;
  const size_t first = interrupts_ ? random_() % count : 0;
  for (size_t i = 0; i < count; ++i) {
    if (!grid_->error.empty()) return false;
    const size_t number = (first + i) % count;
    Warp& warp = cluster->blocks[number / warps]->warps[number % warps];
    if (warp.live != 0 && !warp.is_waiting) RunWarp(&warp);
  }
  return cluster->live_threads == 0;
}

// The lanes furthest behind go first, so that lanes meet again soon after they
// have parted.
void Machine::RunWarp(Warp* warp) {
  warp->yielded = 0;
  whole_slice_ = interrupts_
                     ? 1 + static_cast<int64_t>(random_() % kMaxRandomSlice)
                     : kLongSlice;
  slice_ = whole_slice_;
  while (grid_->error.empty() && !warp->is_waiting && slice_ > 0) {
    const uint32_t ready = warp->live & ~warp->blocked & ~warp->yielded;
    if (ready == 0) return;
    const uint32_t first = FirstPlace(*warp, ready);
    const uint32_t mask = ready & LanesAt(*warp, first);
    RunLanes(warp, mask, first, FirstPlace(*warp, ready & ~mask));
  }
}

void Machine::RunLanes(Warp* warp, uint32_t mask, uint32_t at, uint32_t limit) {
  const auto leave_at = [&](uint32_t place, uint32_t lanes) {
    if (lanes == ~0u) return warp->at.fill(place);
    ForLanes(lanes, [&](int lane) { warp->at[lane] = place; });
  };
  for (; at < limit; ++at) {
    if (--slice_ <= 0) {
      Interrupt(warp);
      break;
    }
    const Instruction& i = program_.code[at];
    uint32_t active = mask;
    if (i.guard >= 0) {
      const uint32_t guard = GetMask(*warp, i.guard);
      active &= i.guard_is_negated ? ~guard : guard;
    }
    if (active == 0) continue;
    if (i.flow == Flow::kPlain) {
      i.handler(*warp, i, active);
      if (!grid_->error.empty()) return;
      continue;
    }
    if (i.flow == Flow::kBranch && active == mask) {
      at = static_cast<uint32_t>(i.target) - 1;
      continue;
    }
    // What follows may part the lanes.
    leave_at(at + 1, mask & ~active);
    leave_at(at, active);
    switch (i.flow) {
      case Flow::kPlain:
        break;
      case Flow::kBranch:
        leave_at(static_cast<uint32_t>(i.target), active);
        break;
      case Flow::kPoll:
      case Flow::kTry:
        i.handler(*warp, i, active);
        leave_at(at + 1, active);
        warp->yielded |= i.flow == Flow::kPoll
                             ? active
                             : active & ~GetMask(*warp, i.operands[0]);
        break;
      case Flow::kExit:
        Exit(warp, active);
        break;
      case Flow::kMembers:
        MeetMembers(warp, i, active);
        break;
      case Flow::kWarp:
      case Flow::kWarpgroup:
      case Flow::kBarrier:
        MeetWarp(warp, i, active);
        break;
      case Flow::kClusterWait:
        WaitForCluster(warp, i, active);
        break;
    }
    return;
  }
  leave_at(at, mask);
}

void Machine::Interrupt(Warp* warp) {
  if (whole_slice_ > kPollLength) ++grid_->progress;
  budget_ -= whole_slice_;
  if (budget_ > 0 || !grid_->error.empty()) return;
  grid_->error =
      fmt::format("Block ({}, {}, {}) does not end.", warp->block->number[0],
                  warp->block->number[1], warp->block->number[2]);
}

void Machine::Exit(Warp* warp, uint32_t mask) {
  Block* const block = warp->block;
  warp->live &= ~mask;
  warp->blocked = 0;  // they may have waited for these lanes
  Cluster* const cluster = block->cluster;
  cluster->live_threads -= __builtin_popcount(mask);
  ForLanes(mask, [&](int lane) {
    if (warp->cluster_phase[lane] == cluster->phase + 1) --cluster->arrived;
  });
  ++grid_->progress;
  if (warp->live == 0) EndWarp(block);
}

// A block that ends lets the next launch begin.
void Machine::CheckSettled(const Block& block) {
  if (!grid_->error.empty() ||
      std::any_of(block.warps.begin(), block.warps.end(),
                  [](const Warp& warp) { return warp.settled != 0; })) {
    return;
  }
  grid_->error = fmt::format(
      "Block ({}, {}, {}) ends and has not waited for the launch before.",
      block.number[0], block.number[1], block.number[2]);
}

// Barriers of the whole block wait for warps that live.
void Machine::EndWarp(Block* block) {
  --block->live_warps;
  if (block->live_warps == 0) CheckSettled(*block);
  for (BlockBarrier& barrier : block->barriers) {
    if (!barrier.waiting.empty()) CheckBarrier(block, &barrier);
  }
}

void Machine::ReportDeadlock() {
  constexpr int kMaxLines = 24;
  std::string places;
  int lines = 0;
  for (const std::unique_ptr<Cluster>& cluster : resident_) {
    for (const std::unique_ptr<Block>& block : cluster->blocks) {
      for (const Warp& warp : block->warps) {
        for (uint32_t rest = warp.live; rest != 0;) {
          const uint32_t at = warp.at[__builtin_ctz(rest)];
          uint32_t here = 0;
          ForLanes(rest, [&](int lane) {
            if (warp.at[lane] == at) here |= 1u << lane;
          });
          rest &= ~here;
          if (++lines > kMaxLines) continue;
          places += fmt::format(
              "\n  block ({}, {}, {}), warp {}, lanes {:08x}: "
              "line {}",
              block->number[0], block->number[1], block->number[2], warp.index,
              here, program_.code[at].line);
        }
      }
    }
  }
  if (lines > kMaxLines)
    places += fmt::format("\n  and {} more", lines - kMaxLines);
  grid_->error = "All threads wait for each other:" + places;
}

}  // namespace kiln::ptx
