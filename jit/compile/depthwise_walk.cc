#include "jit/compile/depthwise_walk.h"

#include <algorithm>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// A warp for each scheduler of a multiprocessor, so that the cycles of a block
// are the instructions of a thread.
constexpr int kThreads = 128;
constexpr int64_t kRegisters = 65536;
// As many threads as a multiprocessor has at least, of all architectures.
constexpr int64_t kMaxBlocks = 1024 / kThreads;
constexpr int64_t kMaxRegisters = 168;  // or few warps are left
// Through fewer rows there is nothing to walk.
constexpr int64_t kMinKernelRows = 3;
constexpr int64_t kMaxParts = 16;

// Registers beside taps, sums and rows.
constexpr int64_t kOtherRegisters = 16;
// Instructions of a row: of an access with its checks, of an output, and the
// others; of a tap and of the thread.
constexpr double kPerAccess = 2.5;
constexpr double kPerOutput = 4;
constexpr double kPerRow = 8;
constexpr double kPerTap = 3;
constexpr double kPerThread = 60;
// Cycles from a load to what comes of it, of memory that others use, too.
constexpr double kLatency = 700;

bool IsNarrow(const DepthwiseWork& work) { return work.element_bytes < 4; }

// Of a row.
int64_t Columns(const DepthwiseWork& work, int vector) {
  return vector + work.weight[3] - 1;
}

int64_t Accesses(const DepthwiseWork& work, int vector) {
  const int64_t early = (vector - work.conv.padding[1] % vector) % vector;
  return CeilDiv(early + Columns(work, vector), vector);
}

int64_t Taps(const DepthwiseWork& work) {
  return work.weight[2] * work.weight[3];
}

// About what ptxas takes: two rows as they lie in memory, of which 16-bit ones
// are converted, half of a row at a time.
int64_t Registers(const DepthwiseWork& work, int vector) {
  const int64_t accesses = Accesses(work, vector);
  const int64_t words = CeilDiv(vector * work.element_bytes, 4);
  const int64_t converted = IsNarrow(work) ? Columns(work, vector) / 2 : 0;
  return RoundUp(Taps(work) + work.weight[2] * vector + 2 * words * accesses +
                     converted + accesses + kOtherRegisters,
                 8);
}

double InstructionsOfRow(const DepthwiseWork& work, int vector) {
  const int64_t converted = IsNarrow(work) ? Columns(work, vector) : 0;
  return static_cast<double>(Taps(work) * vector + converted) +
         kPerAccess * static_cast<double>(Accesses(work, vector)) +
         kPerOutput * vector + kPerRow;
}

// The rows of the input that one of `parts` of the image's walks goes through.
double Rows(const DepthwiseWork& work, int64_t parts) {
  const auto shared =
      static_cast<double>((parts - 1) * (work.weight[2] - 1));
  return static_cast<double>(work.input[2]) / static_cast<double>(parts) +
         shared / static_cast<double>(parts);
}

// Of `blocks` on a multiprocessor, all at once. Loads are made a row ahead, or
// two.
double CyclesAtOnce(const DepthwiseWork& work, int vector, int64_t blocks,
                    double rows) {
  const auto warps = static_cast<double>(blocks);
  const double latency = IsNarrow(work) ? kLatency / 2 : kLatency;
  const double of_row = warps * InstructionsOfRow(work, vector);
  const double of_start =
      kPerTap * static_cast<double>(Taps(work)) + kPerThread;
  return rows * std::max(of_row, latency) + warps * of_start + 2 * kLatency;
}

DepthwiseWalk Walk(const DepthwiseWork& work, int vector, int64_t parts,
                   int sm_count) {
  const int64_t length = CeilDiv(work.output[2], parts);
  const int64_t threads = work.output[0] * work.output[1] *
                          CeilDiv(work.output[2], length) *
                          (work.output[3] / vector);
  const int64_t blocks = CeilDiv(CeilDiv(threads, kThreads), sm_count);
  const int64_t room = kRegisters / (kThreads * Registers(work, vector));
  const int64_t at_once = std::min({blocks, room, kMaxBlocks});
  const double rows = Rows(work, CeilDiv(work.output[2], length));
  const double turn = CyclesAtOnce(work, vector, at_once, rows);
  double cycles = static_cast<double>(blocks / at_once) * turn;
  if (blocks % at_once != 0) {
    cycles += CyclesAtOnce(work, vector, blocks % at_once, rows);
  }
  const DepthwiseTile tile = {.rows = static_cast<int>(length),
                              .columns = vector,
                              .vector = vector,
                              .walks = true,
                              .threads = kThreads,
                              .min_blocks = static_cast<int>(at_once)};
  return {tile, cycles};
}

bool CanWalk(const DepthwiseWork& work, int vector) {
  const Pair one = {1, 1};
  return work.conv.stride == one && work.conv.dilation == one &&
         work.weight[2] >= kMinKernelRows &&
         Registers(work, vector) <= kMaxRegisters;
}

}  // namespace

std::optional<DepthwiseWalk> ChooseDepthwiseWalk(const DepthwiseWork& work,
                                                 int vector, int sm_count) {
  if (!CanWalk(work, vector)) return std::nullopt;
  DepthwiseWalk best = Walk(work, vector, 1, sm_count);
  const int64_t max_parts = std::min(kMaxParts, work.output[2]);
  for (int64_t parts = 2; parts <= max_parts; ++parts) {
    const DepthwiseWalk walk = Walk(work, vector, parts, sm_count);
    if (walk.cycles < best.cycles) best = walk;
  }
  return best;
}

}  // namespace kiln
