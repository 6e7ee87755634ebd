#include "jit/compile/depthwise_tile.h"

#include <algorithm>

#include "jit/compile/depthwise_walk.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Larger filters are gone through row by row, and longer rows part by part. A
// held one shares the registers with the row of the input that lies under it.
// Rows and parts are unrolled, and so is a held filter's reach.
constexpr int64_t kMaxHeld = 90;
constexpr int64_t kMaxReach = 41;
constexpr int64_t kMaxRowTaps = 31;
constexpr int kPartsTaps[] = {16, 8, 4};
constexpr int64_t kMaxStride = 8;

constexpr int kTileRows[] = {1, 2, 4, 7};
// Wide tiles have more of a row in registers, and lanes that load apart: only
// where there are no rows for tall ones, or input rows are loaded again for
// each of the filter's.
constexpr int kMaxColumns = 16;
// Others have one vector; where rows have no whole ones of the widest, up to so
// many columns (24 plans on an H200).
constexpr int kMaxVector = 4;
constexpr int kMaxColumnsOfHeld = 7;
// Such tiles may end beyond a row where a filter has so many taps, and columns
// side by side have inputs in common, so no dilation: whether there is an
// element is then asked for each, one after the other, and of 3 x 3 and 5 x 5
// took 1.1 to 1.8 times as long.
constexpr int64_t kFewestTapsBeyondRows = 49;
constexpr int kTooFewRows = 2;
// Taller tiles take longer to compile: they must save this share.
constexpr double kWorthwhile = 0.95;
// Walks have barriers, and threads that wait for them.
constexpr double kClearly = 0.88;
constexpr int kMemoryBoundRows = 2;

constexpr int64_t kThreads = 256;  // of a block
constexpr int64_t kRegisters = 65536;
constexpr double kBytesPerCycle = 13;  // of the memory, for a multiprocessor
constexpr double kInstructionsPerCycle = 4;
constexpr double kLanes = 32;

// Instructions of a thread: of an access with its checks and conversions, of a
// tap, of an output, and of what comes once.
constexpr double kPerAccess = 8;
constexpr double kPerTap = 3;
constexpr double kPerOutput = 2;
constexpr double kPerThread = 60;

int64_t Reach(const DepthwiseWork& work, size_t axis) {
  return (work.weight[2 + axis] - 1) * work.conv.dilation[axis] + 1;
}

int64_t Taps(const DepthwiseWork& work) {
  return work.weight[2] * work.weight[3];
}

bool HasLongRows(const DepthwiseWork& work) {
  return work.weight[3] > kMaxRowTaps || Reach(work, 1) > kMaxReach;
}

// Of a part of a long row; 0 if dilation is too long.
int TapsOfPart(const DepthwiseWork& work) {
  for (const int taps : kPartsTaps) {
    if ((taps - 1) * work.conv.dilation[1] < kMaxReach) return taps;
  }
  return 0;
}

// That are gone through at once.
int64_t RowTaps(const DepthwiseWork& work) {
  return HasLongRows(work) ? TapsOfPart(work) : work.weight[3];
}

bool HoldsFilter(const DepthwiseWork& work) {
  if (HasLongRows(work)) return false;
  return Taps(work) + Reach(work, 1) <= kMaxHeld && Reach(work, 0) <= kMaxReach;
}

bool Suits(const DepthwiseWork& work) {
  if (work.conv.groups != work.input[1]) return false;
  if (HasLongRows(work) && TapsOfPart(work) == 0) return false;
  const auto [stride_h, stride_w] = work.conv.stride;
  return stride_h <= kMaxStride && stride_w <= kMaxStride;
}

// Vectors end with rows, of the input and of the output.
int Vector(const DepthwiseWork& work) {
  int vector = kMaxVector;
  while (work.output[3] % vector != 0 || work.input[3] % vector != 0) {
    vector /= 2;
  }
  return vector;
}

// Of a tile. Rows and columns between a dilated filter's taps are not loaded.
int64_t Accesses(const DepthwiseWork& work, const DepthwiseTile& tile) {
  const auto [stride_h, stride_w] = work.conv.stride;
  const int64_t taps = RowTaps(work);
  const int64_t columns =
      (tile.columns - 1) * stride_w + (taps - 1) * work.conv.dilation[1] + 1;
  const int64_t early =
      (tile.vector - work.conv.padding[1] % tile.vector) % tile.vector;
  const int64_t of_tap = std::min<int64_t>(
      tile.columns, tile.columns * stride_w / tile.vector + 1);
  const int64_t of_row =
      CeilDiv(work.weight[3], taps) *
      std::min(CeilDiv(early + columns, tile.vector), taps * of_tap);
  const int64_t of_taps = work.weight[2] * tile.rows;
  if (!tile.holds_filter) return of_taps * of_row;
  const int64_t rows = (tile.rows - 1) * stride_h + Reach(work, 0);
  return std::min(rows, of_taps) * of_row;
}

bool IsLow(const DepthwiseWork& work) { return work.output[2] <= kTooFewRows; }

// Of tiles that are not one vector of the widest, whose lanes load apart: a
// warp's access has so many lines of the L1, each of which takes the time of
// four instructions.
double PerAccess(const DepthwiseWork& work, const DepthwiseTile& tile) {
  constexpr double kPerLine = 4;
  constexpr double kLineBytes = 128;
  const bool are_vectors = tile.vector > 1 && tile.columns == tile.vector;
  if (are_vectors || !tile.holds_filter || IsLow(work)) return kPerAccess;
  const auto across =
      static_cast<double>(CeilDiv(work.output[3], tile.columns));
  const double of_row = std::min(across, kLanes);
  const auto apart = static_cast<double>(tile.columns * work.conv.stride[1] *
                                         work.element_bytes);
  const double lines =
      kLanes / of_row * std::max(1.0, of_row * apart / kLineBytes);
  return std::max(kPerAccess, kPerLine * lines);
}

double Instructions(const DepthwiseWork& work, const DepthwiseTile& tile) {
  const auto taps = static_cast<double>(Taps(work));
  const double outputs = tile.rows * tile.columns;
  return PerAccess(work, tile) * static_cast<double>(Accesses(work, tile)) +
         kPerTap * taps + (kPerOutput + taps) * outputs + kPerThread;
}

// About what ptxas takes of registers: it reloads some of the filter.
int64_t BlocksOfMultiprocessor(const DepthwiseWork& work,
                               const DepthwiseTile& tile) {
  const int64_t more = tile.holds_filter
                           ? 40 + Taps(work) / 2 + tile.columns - tile.vector
                           : 24 + 3 * RowTaps(work) / 2 + tile.columns;
  const int64_t registers = RoundUp(tile.rows * tile.columns + more, 8);
  return std::max<int64_t>(1, kRegisters / (kThreads * registers));
}

int64_t Blocks(const DepthwiseWork& work, const DepthwiseTile& tile) {
  return CeilDiv(work.output[0] * work.output[1] *
                     CeilDiv(work.output[2], tile.rows) *
                     CeilDiv(work.output[3], tile.columns),
                 kThreads);
}

// Of one multiprocessor. A block waits for its loads about as long as it
// computes, so that one more at a time hides as much as it adds.
double ComputeCycles(const DepthwiseWork& work, const DepthwiseTile& tile,
                     int sm_count) {
  const int64_t blocks = CeilDiv(Blocks(work, tile), sm_count);
  const int64_t at_once = std::min(blocks, BlocksOfMultiprocessor(work, tile));
  const auto turns = static_cast<double>(CeilDiv(blocks, at_once));
  const double cycles = Instructions(work, tile) *
                        (static_cast<double>(kThreads) / kLanes) /
                        kInstructionsPerCycle;
  return turns * static_cast<double>(at_once + 1) * cycles;
}

DepthwiseTile LowTile(const DepthwiseWork& work, int vector) {
  return {kMemoryBoundRows, vector, vector, HoldsFilter(work),
          HasLongRows(work) ? TapsOfPart(work) : 0};
}

// Whether low tiles compute sooner than memory brings and takes `bytes`.
bool IsMemoryBound(const DepthwiseWork& work, int vector, int64_t bytes,
                   int sm_count) {
  return ComputeCycles(work, LowTile(work, vector), sm_count) <
         static_cast<double>(bytes) / kBytesPerCycle / sm_count;
}

bool CanHave(const DepthwiseWork& work, int vector, int columns) {
  if (work.output[3] % columns == 0) return true;
  return vector < kMaxVector && Taps(work) >= kFewestTapsBeyondRows &&
         work.conv.dilation[1] == 1;
}

// Low where that is memory's time, else the one whose threads compute the
// fewest cycles.
DepthwiseTile BestTile(const DepthwiseWork& work, int vector, int sm_count) {
  DepthwiseTile best = LowTile(work, vector);
  if (IsMemoryBound(work, vector, work.bytes, sm_count)) return best;
  const bool holds_filter = best.holds_filter;
  const int row_taps = best.row_taps;
  best.rows = kTileRows[0];
  const bool are_wide = !holds_filter || IsLow(work);
  const bool is_narrow = vector < kMaxVector;
  const int max_columns = are_wide    ? kMaxColumns
                          : is_narrow ? kMaxColumnsOfHeld
                                      : kMaxVector;
  for (int columns = vector; columns <= max_columns; columns += vector) {
    if (!CanHave(work, vector, columns)) continue;
    for (const int rows : kTileRows) {
      const DepthwiseTile tile = {rows, columns, vector, holds_filter,
                                  row_taps};
      if (ComputeCycles(work, tile, sm_count) <
          kWorthwhile * ComputeCycles(work, best, sm_count)) {
        best = tile;
      }
    }
  }
  return best;
}

}  // namespace

std::optional<DepthwiseTile> ChooseDepthwiseTile(const DepthwiseWork& work,
                                                 int sm_count) {
  if (!Suits(work)) return std::nullopt;
  const int vector = Vector(work);
  const DepthwiseTile tile = BestTile(work, vector, sm_count);
  const int64_t narrowest =  // if what follows rounds to the input's type
      (NumElements(work.input) + NumElements(work.output)) * work.element_bytes;
  if (!tile.holds_filter) return tile;
  if (IsMemoryBound(work, vector, narrowest, sm_count)) return tile;
  const auto walk = ChooseDepthwiseWalk(work, vector, sm_count);
  const double cycles = kClearly * ComputeCycles(work, tile, sm_count);
  return walk && walk->cycles < cycles ? walk->tile : tile;
}

}  // namespace kiln
