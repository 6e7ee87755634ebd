#ifndef KILN_JIT_COMPILE_ROW_GEOMETRY_H_
#define KILN_JIT_COMPILE_ROW_GEOMETRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/artifact/artifact.h"

namespace kiln {

// Shared memory for barriers, statistics and alignment of row_team.cu, beside
// its ring.
inline constexpr int64_t kTeamControlBytes = 4096;

// Who keeps the rows of a normalisation on chip between their statistics and
// their results.
enum class RowKeeper : uint8_t {
  kWarp,     // lanes of a warp, or of several, in registers: row_warp.cu
  kBlock,    // a block, part of one, or a cluster: row_block.cu
  kColumns,  // a block, several rows that lie side by side: column_block.cu
  kTeam,     // several blocks, one on each multiprocessor: row_team.cu
  // Through several reductions:
  kChain,      // a block, part of one, or a cluster: row_chain.cu
  kWarpChain,  // as kWarp, or threads above each other: row_warp_chain.cu
};

// What a kernel is to do with rows: `length` elements, `pitch` apart in memory,
// with statistics of their own.
struct RowWork {
  int64_t rows = 1;
  int64_t length = 1;
  int64_t pitch = 1;  // 1: neighbours; else rows lie side by side
  // Elements of each run of neighbours, if a row has several, between which lie
  // those of all other rows; 0: it has one. Only of several reductions.
  int64_t run = 0;
  std::vector<int> staged;        // operands with as many elements as the rows
  std::vector<int> staged_bytes;  // of an element of each; the first is the
                                  // one that statistics are taken of
  std::vector<int> stored_bytes;  // of an element of each result
  // Of an element, of operands that are read as vectors beside it, which others
  // with the same columns read, too.
  int beside_bytes = 0;
  bool copies = false;  // one operand is kept as it is: row_places.cuh
  int kept_bytes = 4;   // of an element of what is kept
  // What is kept is the copy, of which statistics' operand is computed again.
  bool reads_again = false;
  // The operand that it is computed of is read for the results, too.
  bool is_read_beside = false;
  // Elements of which a reduction makes one output, where nothing else reads
  // the results; 0: results are written.
  int64_t segment = 0;
  bool publishes = false;  // row_team.cu knows how to send the statistics
  // None of the operands that rows have as many elements of is made by another
  // kernel.
  bool comes_first = false;
  bool is_read_next = false;  // another kernel reads what is stored
  // Of reductions of the same rows. Of several all operands that they are made
  // of are kept as they are; apart, kernels move so many bytes of an element.
  int reductions = 1;
  int64_t shortest = 0;  // of their rows, where these are parts of each other
  int apart_bytes = 0;
  int apart_kernels = 0;
  // Of several, none is computed of another, and nothing of the rows but
  // numbers is stored: one pass over them is enough, in which each thread has
  // so many bytes of states for a row. Else 0.
  int64_t pass_state_bytes = 0;
  // What is computed of rows' numbers is computed of nothing else, but
  // literals, as chains have it.
  bool has_pure_numbers = true;
  // Of an element, how many values are needed behind a reduction at most, of
  // those that are there by then.
  int held_values = 0;
  bool spares_registers = false;  // see RowOptions
  int prologue = 0;               // operations before the statistics
  int epilogue = 0;               // and behind them
};

// How threads share rows; the names are those of row_block.cu and row_team.cu.
struct RowGeometry {
  RowKeeper keeper = RowKeeper::kBlock;
  int64_t rows = 1;
  int64_t length = 1;
  int64_t pitch = 1;
  int64_t run = 0;  // see RowWork
  int vector = 1;   // elements of one access of a thread
  int at_once = 1;  // vectors that a thread loads before it uses them
  int64_t dynamic_shared_bytes = 0;

  // All but kTeam. `lanes` threads of each of `cluster` blocks share a row;
  // these are a cluster, or see `splits`.
  int threads = 256;
  int lanes = 256;
  int cluster = 1;
  bool copies = false;  // see RowWork
  int kept_bytes = 4;   // 0: one pass, of which nothing is kept
  bool reads_again = false;
  bool streams = false;  // the copies are of what nobody reads again
  // The blocks that share a row of kChain are no cluster: each leaves states in
  // memory, for a kernel that merges them.
  bool splits = false;
  int64_t segment = 0;
  int segment_lanes = 1;   // threads that share one
  int segment_vector = 1;  // elements of one access of theirs
  int turns = 1;           // in which the first blocks of kBlock begin
  int turn_blocks = 0;     // of one turn
  int turn_cycles = 0;     // from one to the next

  // kTeam: `team` blocks share a row, and rows are dealt out to `teams` of
  // them; `chunks` in a block's slice of a row, of `chunk` elements of each
  // staged operand; `slots` of them in the ring.
  int team = 0;
  int teams = 1;
  int chunks = 0;
  int64_t chunk = 0;
  int slots = 0;
  int64_t slot_bytes = 0;
  int row_groups = 1;        // rows that different warps work on at once
  int finishers = 0;         // warps that compute results,
  int finished_at_once = 1;  // so many vectors of a thread at a time
  // All blocks are resident together. Else they take their turns
  // in three launches of the same kernel, and touch the rows once more.
  bool resident = true;
  std::vector<int> staged;

  int64_t blocks() const;
  // Of elements, how many finishers' turns with so large a chunk have room for.
  int64_t TurnsOf(int64_t elements) const;
  // Of one warp alone.
  bool is_in_warp() const { return keeper == RowKeeper::kWarp && lanes <= 32; }
  bool is_chain() const {
    return keeper == RowKeeper::kChain || keeper == RowKeeper::kWarpChain;
  }
  bool is_warp_chain() const { return keeper == RowKeeper::kWarpChain; }
  // Of the device, by this kernel: that all blocks are resident together.
  // Shared memory and clusters are matters of the architecture, and no more is
  // asked for than that has.
  Requirements requirements() const;
  friend bool operator==(const RowGeometry&, const RowGeometry&) = default;
};

// What was weighed for the rows of one kernel.
struct RowCandidate {
  // Of what does not fit, only `keeper` and `cluster`. Empty: statistics and
  // results in kernels of their own, which always fits.
  std::optional<RowGeometry> geometry;
  double microseconds = 0;  // predicted, if it fits
  std::string refusal;      // why it does not fit; empty if it does
};

// The cheapest geometry whose rows stay on the chip; empty if none does, or if
// statistics and results in two kernels, three touches of memory, cost less.
std::optional<RowGeometry> ChooseRowGeometry(const RowWork& work,
                                             const Target& target);

// All that is weighed for that: what fits, fastest first, then what does not.
std::vector<RowCandidate> RankRowGeometries(const RowWork& work,
                                            const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROW_GEOMETRY_H_
