#include "jit/compile/depthwise_walk.h"

#include <algorithm>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// A warp for each scheduler of a multiprocessor, so that the cycles of a block
// are the instructions of a thread.
constexpr int kThreads = 128;
constexpr int64_t kRegisters = 65536;
constexpr int64_t kSharedBytes = 100 << 10;  // of sm_86, the least from 80 on
constexpr int64_t kBlockSharedBytes = 48 << 10;
constexpr int64_t kMaxBlocks = 8;
constexpr int64_t kMaxRegisters = 168;  // or few warps are left
// Smaller filters are the memory's work, and of fewer columns start and end are
// most of a walk.
constexpr int64_t kMinKernelRows = 5;
constexpr int64_t kMinColumns = 14;
constexpr int64_t kMinVectorBytes = 8;
constexpr int64_t kMaxParts = 8;
// Parts of an image load rows that others load: they must save this share.
constexpr double kWorthwhile = 0.95;
// With 16 bytes a thread and three blocks 40 KB are on their way, of which
// memory needs 12 (3 TB/s, 1 us, and as much is written).
constexpr int kRowsAhead = 7;

// Registers beside taps, sums and the row, and of a tensor that what follows
// reads.
constexpr int64_t kOtherRegisters = 22;
constexpr int64_t kPerOperand = 4;
// Instructions of a row: of an output, and the others; of a tap that comes to
// shared memory, and of the thread.
constexpr double kPerOutput = 4;
constexpr double kPerRow = 36;
constexpr double kPerTap = 9;
constexpr double kPerThread = 150;
// Cycles from a load to what comes of it, of memory that others use, too; of a
// row from its barrier to its first product.
constexpr double kLatency = 1500;
constexpr double kRowLatency = 100;
constexpr double kBytesPerCycle = 13;  // of the memory, for a multiprocessor

int64_t Taps(const DepthwiseWork& work) {
  return work.weight[2] * work.weight[3];
}

// Of a thread.
double InstructionsOfRow(const DepthwiseWork& work, const DepthwiseTile& walk) {
  const int64_t converted =
      work.element_bytes < 4 ? walk.vector + work.weight[3] - 1 : 0;
  return static_cast<double>(Taps(work) * walk.vector + converted) +
         kPerOutput * walk.vector + kPerRow;
}

// About what ptxas takes.
int64_t Registers(const DepthwiseWork& work, const DepthwiseTile& walk) {
  const int64_t sums = work.weight[2] * walk.vector;
  const int64_t row = 2 * walk.vector + work.weight[3];
  const int64_t words = work.element_bytes < 4 ? walk.vector : 0;
  return RoundUp(Taps(work) + sums + row + words + kPerOperand * work.operands +
                     kOtherRegisters,
                 8);
}

// A row's threads.
int64_t Vectors(const DepthwiseWork& work, const DepthwiseTile& walk) {
  return std::max(work.input[3], work.output[3]) / walk.vector;
}

// Of a block.
int64_t Planes(const DepthwiseWork& work, const DepthwiseTile& walk) {
  return kThreads / Vectors(work, walk);
}

int64_t Parts(const DepthwiseWork& work, const DepthwiseTile& walk) {
  return CeilDiv(work.output[2], walk.rows);
}

// Vectors between planes that the filter may reach.
int64_t Gap(const DepthwiseWork& work, const DepthwiseTile& walk) {
  const int64_t padding = work.conv.padding[1];
  return CeilDiv(std::max(padding, work.weight[3] - 1 - padding), walk.vector);
}

int64_t SharedBytes(const DepthwiseWork& work, const DepthwiseTile& walk) {
  const int64_t planes = Planes(work, walk);
  const int64_t gap = Gap(work, walk);
  const int64_t places = gap + planes * (Vectors(work, walk) + gap);
  return places * walk.vector * work.element_bytes * (walk.rows_ahead + 1) +
         planes * Taps(work) * 4 + 4;
}

// Of `blocks` on a multiprocessor, all at once.
double CyclesAtOnce(const DepthwiseWork& work, const DepthwiseTile& walk,
                    int64_t blocks) {
  const auto warps = static_cast<double>(blocks);
  const auto rows = static_cast<double>(
      std::min(work.input[2], walk.rows + work.weight[2] - 1));
  const double of_row = InstructionsOfRow(work, walk);
  const double start =
      kPerThread + static_cast<double>(Taps(work)) +
      kPerTap * static_cast<double>(Taps(work) * Planes(work, walk)) / kThreads;
  return rows * std::max(warps * of_row, of_row + kRowLatency) + warps * start +
         2 * kLatency;
}

// Where what follows rounds to the input's type.
double MemoryCycles(const DepthwiseWork& work, int sm_count) {
  const int64_t elements = NumElements(work.input) + NumElements(work.output);
  return static_cast<double>(elements * work.element_bytes) / kBytesPerCycle /
         sm_count;
}

// Also says how many blocks there are at once.
double Cycles(const DepthwiseWork& work, int sm_count, DepthwiseTile* walk) {
  const int64_t planes = work.output[0] * work.output[1];
  const int64_t all = CeilDiv(planes, Planes(work, *walk)) * Parts(work, *walk);
  const int64_t blocks = CeilDiv(all, sm_count);
  const int64_t at_once = std::min(
      {blocks, kMaxBlocks, kRegisters / (kThreads * Registers(work, *walk)),
       kSharedBytes / SharedBytes(work, *walk)});
  walk->min_blocks = static_cast<int>(at_once);
  double cycles = static_cast<double>(blocks / at_once) *
                  CyclesAtOnce(work, *walk, at_once);
  if (blocks % at_once != 0) {
    cycles += CyclesAtOnce(work, *walk, blocks % at_once);
  }
  return std::max(cycles, MemoryCycles(work, sm_count) + 2 * kLatency);
}

bool CanWalk(const DepthwiseWork& work, const DepthwiseTile& walk) {
  const Pair one = {1, 1};
  return work.has_async_copies && work.conv.stride == one &&
         work.conv.dilation == one && work.conv.padding[0] < work.weight[2] &&
         work.conv.padding[1] < work.weight[3] &&
         work.weight[2] >= kMinKernelRows &&
         std::min(work.input[3], work.output[3]) >= kMinColumns &&
         walk.vector * work.element_bytes >= kMinVectorBytes &&
         Vectors(work, walk) <= kThreads &&
         Registers(work, walk) <= kMaxRegisters &&
         SharedBytes(work, walk) <= kBlockSharedBytes;
}

}  // namespace

std::optional<DepthwiseWalk> ChooseDepthwiseWalk(const DepthwiseWork& work,
                                                 int vector, int sm_count) {
  std::optional<DepthwiseWalk> best;
  DepthwiseTile walk = {.columns = vector,
                        .vector = vector,
                        .walks = true,
                        .rows_ahead = kRowsAhead,
                        .threads = kThreads};
  if (!CanWalk(work, walk)) return best;
  const int64_t max_parts = std::min(kMaxParts, work.output[2]);
  for (int64_t parts = 1; parts <= max_parts; ++parts) {
    walk.rows = static_cast<int>(CeilDiv(work.output[2], parts));
    const double cycles = Cycles(work, sm_count, &walk);
    if (!best || cycles < kWorthwhile * best->cycles) best = {walk, cycles};
  }
  return best;
}

}  // namespace kiln
