#ifndef KILN_TESTS_PTX_MACHINE_H_
#define KILN_TESTS_PTX_MACHINE_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/ptx/instruction.h"
#include "tests/ptx/memory.h"
#include "tests/ptx/races.h"

namespace kiln::ptx {

// The state of a grid that runs, for the machine and for handlers.

struct Block;
struct Cluster;

// Bytes on their way to shared memory.
struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint32_t size = 0;
  uint32_t read = 0;             // of `from`; the rest are zeros
  int64_t group = 0;             // of the lane that waits for it
  std::byte* barrier = nullptr;  // that counts it, or null
  Block* block = nullptr;        // whose memory it fills
  uint32_t time = 0;             // of SharedRaces
};

struct Instruction;
struct Warp;

// An arrival of a lane once its copies have arrived.
struct LateArrival {
  Warp* warp = nullptr;
  const Instruction* instruction = nullptr;
  int lane = 0;
  std::byte* barrier = nullptr;
  std::vector<Copy> copies;
};

// A product of a warpgroup that has been issued.
struct PendingProduct {
  const Instruction* instruction = nullptr;
  bool is_bfloat16 = false;
  bool is_transposed = false;  // the right matrix
  uint64_t left = 0;           // descriptors
  uint64_t right = 0;
  bool keeps = false;  // adds to the sums
  int64_t group = 0;
};

// What all blocks of a launch have in common.
struct Grid {
  std::array<uint32_t, 3> blocks = {1, 1, 1};
  std::array<uint32_t, 3> threads = {1, 1, 1};
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  const std::byte* parameters = nullptr;
  const GlobalMemory* memory = nullptr;
  bool overlaps = false;     // the launch before
  bool rounds_sums = false;  // of warpgroups' products
  // Counts what other threads can notice: while it stands still, all that run
  // only wait.
  uint64_t progress = 0;
  std::vector<Copy> copies;  // that barriers count, and have not arrived
  std::vector<LateArrival> arrivals;
  std::string error;  // the first, or empty
};

struct Warp {
  Grid* grid = nullptr;
  Block* block = nullptr;
  int index = 0;  // in the block
  std::byte* registers = nullptr;
  const std::byte* constants = nullptr;

  std::array<uint32_t, kLanes> at = {};  // instruction of each lane
  uint32_t live = 0;                     // lanes that have not left
  uint32_t blocked = 0;     // lanes that wait for others at an instruction
  uint32_t yielded = 0;     // lanes that poll, and go on when others have run
  uint32_t settled = 0;     // lanes that have waited for the launch before
  bool is_waiting = false;  // as a whole, for other warps
  // Copies that each lane waits for by itself, and the group to which the next
  // belongs.
  std::array<std::vector<Copy>, kLanes> copies;
  std::array<int64_t, kLanes> copy_group = {};
  // Of the cluster's barrier at a lane's last arrival, and one more; else 0.
  std::array<uint32_t, kLanes> cluster_phase = {};
};

// A barrier of bar.sync.
struct BlockBarrier {
  std::vector<Warp*> waiting;
  uint32_t threads = 0;  // that it is of; 0: all that live
  uint32_t any = 0;      // whether a predicate of bar.red was true
};

// Four neighbours among the warps of a block.
struct Warpgroup {
  std::vector<Warp*> waiting;
  std::deque<PendingProduct> products;
  int64_t product_group = 0;  // to which the next product belongs
};

struct Block {
  Cluster* cluster = nullptr;
  std::array<uint32_t, 3> number = {};
  int rank = 0;  // in the cluster
  std::vector<std::byte> shared;
  std::vector<std::byte> registers;
  std::vector<Warp> warps;
  int live_warps = 0;
  std::array<BlockBarrier, 16> barriers;
  std::vector<Warpgroup> warpgroups;
  SharedRaces races;
};

// Blocks that read each other's shared memory.
struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;  // by rank
  int live_threads = 0;
  int arrived = 0;
  uint32_t phase = 0;  // of its barrier
};

// Lanes of a place. Values narrower than a word lie in its lower bits.
inline const std::byte* Source(const Warp& warp, Place place) {
  return place >= 0 ? warp.registers + place : warp.constants + ~place;
}
inline std::byte* Destination(Warp& warp, Place place) {
  return warp.registers + place;
}

template <typename T>
T Get(const std::byte* lanes, int lane) {
  T value;
  std::memcpy(&value, lanes + lane * (sizeof(T) == 8 ? 8 : 4), sizeof(T));
  return value;
}

// Narrow values are extended by zeros.
template <typename T>
void Put(std::byte* lanes, int lane, T value) {
  if constexpr (sizeof(T) < 4) {
    uint32_t word = 0;
    std::memcpy(&word, &value, sizeof(T));
    std::memcpy(lanes + lane * 4, &word, 4);
  } else {
    std::memcpy(lanes + lane * sizeof(T), &value, sizeof(T));
  }
}

inline uint32_t GetMask(const Warp& warp, Place place) {
  return Get<uint32_t>(Source(warp, place), 0);
}
inline void PutMask(Warp& warp, Place place, uint32_t mask, uint32_t values) {
  std::byte* const bits = Destination(warp, place);
  Put(bits, 0, (Get<uint32_t>(bits, 0) & ~mask) | (values & mask));
}

// Calls `body(lane)` for each lane of `mask`, in order.
template <typename Body>
inline void ForLanes(uint32_t mask, Body body) {
  if (mask == ~0u) {
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
  } else {
    for (; mask != 0; mask &= mask - 1) body(__builtin_ctz(mask));
  }
}

// Lanes that are at an instruction, or have left there.
inline uint32_t LanesAt(const Warp& warp, uint32_t at) {
  uint32_t lanes = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes |= static_cast<uint32_t>(warp.at[lane] == at) << lane;
  }
  return lanes;
}

// Stops the grid, unless it has failed before. `what` ends without a period.
void Fail(Warp& warp, const Instruction& instruction, int lane,
          const std::string& what);

// Ends the copies that barriers count: all, or by `random` some, so that those
// that began later may end earlier.
void LandCopies(Grid* grid, std::mt19937_64* random);

// Runs a grid to its end.
class Machine {
 public:
  // `code` and `constants` are the program's; `special` says where registers
  // lie that the launch fills.
  struct Program {
    const Instruction* code = nullptr;
    const std::byte* constants = nullptr;
    int64_t register_bytes = 0;  // of a warp
    int64_t shared_bytes = 0;    // of a block, with what the launch adds
    // Places of "%tid.x" and so on, -1 where unused: tid, ntid, ctaid, nctaid,
    // cluster_ctaid, each x, y, z; then laneid, cluster_ctarank, warpid; and
    // clock64, which has 64 bits.
    std::array<Place, 19> special = {};
  };

  // `seed`: 0 for warps that run as far as they can, in the order of their
  // numbers; else they are interrupted at random and go on in any order.
  Machine(const Program& program, Grid* grid, uint64_t seed);

  // `resident`: blocks that run at a time, at least a cluster; the others
  // follow in the order of their numbers. What fails is in the grid's `error`.
  void Run(int64_t resident);

 private:
  void Start(int64_t first);
  void StartBlock(Block* block);
  void FillSpecial(Block* block, Warp* warp);
  // Runs warps until all wait; returns whether the cluster has ended.
  bool RunCluster(Cluster* cluster);
  void RunWarp(Warp* warp);
  // Runs the lanes of `mask`, all at `at`, as far as `limit`.
  void RunLanes(Warp* warp, uint32_t mask, uint32_t at, uint32_t limit);
  void Interrupt(Warp* warp);
  // Each leaves `at` of the lanes where they go on.
  void Exit(Warp* warp, uint32_t mask);
  void CheckSettled(const Block& block);
  void EndWarp(Block* block);
  void MeetMembers(Warp* warp, const Instruction& i, uint32_t mask);
  void MeetWarp(Warp* warp, const Instruction& i, uint32_t mask);
  void MeetBlock(Warp* warp, const Instruction& i);
  void MeetWarpgroup(Warp* warp, const Instruction& i);
  void WaitForCluster(Warp* warp, const Instruction& i, uint32_t mask);
  void CheckBarrier(Block* block, BlockBarrier* barrier);
  void ReportDeadlock();

  const Program& program_;
  Grid* const grid_;
  const bool interrupts_;
  std::mt19937_64 random_;
  int64_t whole_slice_ = 0;
  int64_t slice_ = 0;  // instructions until the warp is interrupted
  int64_t budget_;     // instructions of warps until the grid is given up
  std::vector<std::unique_ptr<Cluster>> resident_;
  std::vector<std::unique_ptr<Block>> unused_;  // whose memory is used again
};

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_MACHINE_H_
