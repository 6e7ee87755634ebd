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
// Parts of an image load rows that others load, and rows further ahead take
// more code: they must save this share.
constexpr double kWorthwhile = 0.95;

// Columns of a thread of several vectors, as where rows are no multiple of 4.
// Some may be past the end of a row.
constexpr int kMaxColumns = 4;

// Registers beside taps, sums and rows, and of a tensor that what follows
// reads.
constexpr int64_t kOtherRegisters = 17;
constexpr int64_t kPerOperand = 4;
// Instructions of a row: of an access with its checks, of an output, and the
// others; of a tap that comes to shared memory, and of the thread.
constexpr double kPerAccess = 2.5;
constexpr double kPerOutput = 4;
constexpr double kPerRow = 8;
constexpr double kPerTap = 9;
constexpr double kPerThread = 60;
// Cycles from a load to what comes of it, of memory that others use, too.
constexpr double kLatency = 800;

// Of what a walk does for each row of the input.
struct Row {
  int64_t taps;     // of the filter
  int64_t columns;  // of the input
  int64_t outputs;
  int64_t accesses;
  int64_t words;      // of an access
  bool is_converted;  // from 16 bits

  Row(const DepthwiseWork& work, const DepthwiseTile& walk)
      : taps(work.weight[2] * work.weight[3]),
        columns(walk.columns + work.weight[3] - 1),
        outputs(walk.columns),
        words(CeilDiv(walk.vector * work.element_bytes, 4)),
        is_converted(work.element_bytes < 4) {
    const int64_t vector = walk.vector;
    const int64_t early = (vector - work.conv.padding[1] % vector) % vector;
    accesses = CeilDiv(early + columns, vector);
  }

  double Instructions() const {
    return static_cast<double>(taps * outputs + (is_converted ? columns : 0)) +
           kPerAccess * static_cast<double>(accesses) +
           kPerOutput * static_cast<double>(outputs) + kPerRow;
  }
};

// About what ptxas takes. Rows that are not converted have two places.
int64_t Registers(const DepthwiseWork& work, const DepthwiseTile& walk) {
  const Row row(work, walk);
  const int64_t places = row.is_converted ? walk.rows_ahead : 2;
  return RoundUp(row.taps + work.weight[2] * row.outputs +
                     places * row.words * row.accesses + row.accesses * 3 / 2 +
                     kPerOperand * work.operands + kOtherRegisters,
                 8);
}

// A walk down the whole image or a part of it, of all that there are.
int64_t Parts(const DepthwiseWork& work, const DepthwiseTile& walk) {
  return CeilDiv(work.output[2], walk.rows);
}

int64_t ThreadsOfPlane(const DepthwiseWork& work, const DepthwiseTile& walk) {
  return Parts(work, walk) * CeilDiv(work.output[3], walk.columns);
}

// The rows of the input that a walk goes through, in the mean.
double Rows(const DepthwiseWork& work, const DepthwiseTile& walk) {
  const int64_t parts = Parts(work, walk);
  const int64_t twice = (parts - 1) * (work.weight[2] - 1);
  return static_cast<double>(work.input[2] + twice) /
         static_cast<double>(parts);
}

// Before the first row. A block brings the filters of its planes.
double InstructionsOfStart(const DepthwiseWork& work,
                           const DepthwiseTile& walk) {
  const auto taps = static_cast<double>(work.weight[2] * work.weight[3]);
  const double planes =
      1 + kThreads / static_cast<double>(ThreadsOfPlane(work, walk));
  return kPerThread + taps + kPerTap * planes * taps / kThreads;
}

// Of `blocks` on a multiprocessor, all at once.
double CyclesAtOnce(const DepthwiseWork& work, const DepthwiseTile& walk,
                    int64_t blocks) {
  const auto warps = static_cast<double>(blocks);
  const double of_row = std::max(warps * Row(work, walk).Instructions(),
                                 kLatency / walk.rows_ahead);
  return Rows(work, walk) * of_row + warps * InstructionsOfStart(work, walk) +
         2 * kLatency;
}

// Also says how many blocks there are at once.
double Cycles(const DepthwiseWork& work, int sm_count, DepthwiseTile* walk) {
  const int64_t threads =
      work.output[0] * work.output[1] * ThreadsOfPlane(work, *walk);
  const int64_t blocks = CeilDiv(CeilDiv(threads, kThreads), sm_count);
  const int64_t room = kRegisters / (kThreads * Registers(work, *walk));
  const int64_t at_once = std::min({blocks, room, kMaxBlocks});
  walk->min_blocks = static_cast<int>(at_once);
  double cycles = static_cast<double>(blocks / at_once) *
                  CyclesAtOnce(work, *walk, at_once);
  if (blocks % at_once != 0) {
    cycles += CyclesAtOnce(work, *walk, blocks % at_once);
  }
  return cycles;
}

bool CanWalk(const DepthwiseWork& work) {
  const Pair one = {1, 1};
  return work.conv.stride == one && work.conv.dilation == one &&
         work.weight[2] >= kMinKernelRows;
}

// Takes the walk instead of the best so far if it is faster.
void Offer(const DepthwiseWork& work, int sm_count, DepthwiseTile walk,
           std::optional<DepthwiseWalk>* best) {
  if (Registers(work, walk) > kMaxRegisters) return;
  const double cycles = Cycles(work, sm_count, &walk);
  if (!*best || cycles < kWorthwhile * (*best)->cycles) *best = {walk, cycles};
}

}  // namespace

std::optional<DepthwiseWalk> ChooseDepthwiseWalk(const DepthwiseWork& work,
                                                 int vector, int sm_count) {
  std::optional<DepthwiseWalk> best;
  if (!CanWalk(work)) return best;
  const int max_ahead = work.element_bytes < 4 ? 2 : 1;
  const int64_t max_parts = std::min(kMaxParts, work.output[2]);
  DepthwiseTile walk = {.vector = vector, .walks = true, .threads = kThreads};
  for (int columns = vector; columns <= kMaxColumns; columns *= 2) {
    for (int ahead = 1; ahead <= max_ahead; ++ahead) {
      for (int64_t parts = 1; parts <= max_parts; ++parts) {
        walk.rows = static_cast<int>(CeilDiv(work.output[2], parts));
        walk.columns = columns;
        walk.rows_ahead = ahead;
        Offer(work, sm_count, walk, &best);
      }
    }
  }
  return best;
}

}  // namespace kiln
