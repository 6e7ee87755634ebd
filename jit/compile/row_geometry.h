#ifndef KILN_JIT_COMPILE_ROW_GEOMETRY_H_
#define KILN_JIT_COMPILE_ROW_GEOMETRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/artifact/artifact.h"

namespace kiln {

// Who keeps the rows of a normalisation on chip between their statistics and
// their results.
enum class RowKeeper : uint8_t {
  kBlock,  // a block, part of one, or a cluster: row_block.cu
  kTeam,   // all blocks of the device: row_team.cu
};

// What a kernel is to do with rows: stretches of `length` neighbours in
// memory, each with statistics of its own.
struct RowWork {
  int64_t rows = 1;
  int64_t length = 1;
  std::vector<int> staged;        // operands with as many elements as the rows
  std::vector<int> staged_bytes;  // of an element of each; the first is the
                                  // one that statistics are taken of
  std::vector<int> stored_bytes;  // of an element of each result
  bool publishes = false;  // row_team.cu knows how to send the statistics
  int prologue = 0;        // operations before the statistics
};

// How threads share rows; the names are those of row_block.cu and row_team.cu.
struct RowGeometry {
  RowKeeper keeper = RowKeeper::kBlock;
  int64_t rows = 1;
  int64_t length = 1;
  int vector = 1;   // elements of one access of a thread
  int at_once = 1;  // vectors that a thread loads before it uses them
  int64_t dynamic_shared_bytes = 0;

  // kBlock. `lanes` threads of each of `cluster` blocks share a row.
  int threads = 256;
  int lanes = 256;
  int cluster = 1;

  // kTeam: `team` blocks, all resident; `chunks` in a block's slice of a row,
  // of `chunk` elements of each staged operand; `slots` of them in the ring.
  int team = 0;
  int chunks = 0;
  int64_t chunk = 0;
  int slots = 0;
  int64_t slot_bytes = 0;
  std::vector<int> staged;

  int64_t blocks() const;
  // Of the device, by this kernel.
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
