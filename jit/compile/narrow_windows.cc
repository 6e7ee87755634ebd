#include "jit/compile/narrow_windows.h"

#include <algorithm>
#include <variant>

#include "jit/compile/direct_cost.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Beyond so many results, and products with an element, tensor cores are
// faster (docs/kernel-notes/surveys.md, the seventeenth), but of few channels,
// for which they mostly multiply zeros.
constexpr int64_t kMostOfF32 = 4;
constexpr int64_t kMostOfTf32 = 3;
constexpr int64_t kMostOf16Bits = 2;
constexpr int64_t kMostProducts = 50;
constexpr int64_t kFewChannels = 4;
constexpr int64_t kMostOfFewF32 = 8;
constexpr int64_t kMostOfFew16Bits = 4;
constexpr int kVector = 4;
constexpr int64_t kMostRows = 4;
// Rows of results that a thread has sums for, and elements of a row that their
// windows cover.
constexpr int64_t kMostSums = 8;
constexpr int64_t kMostElements = 32;
// Products that are written out, more of which take long to compile.
constexpr int64_t kMostUnrolled = 400;
constexpr int64_t kThreads = 256;
constexpr int kBlocksAtOnce = 2;  // of a multiprocessor
constexpr int64_t kWarp = 32;
// Of a multiprocessor that has enough to do.
constexpr int64_t kEnoughThreads = 1024;
// So many times the memory's time, which is what tensor cores take, loads of
// channels behind each other may take.
constexpr double kTimesMemory = 4;
constexpr double kTimesMemoryOfTf32 = 2;
// Products of a sum: more of them add up errors.
constexpr int64_t kMostOfSum = 1024;
constexpr int64_t kMostSharedBytes = 48 * 1024;  // that need no permission

struct WindowWork {
  Dims input;
  Dims output;
  Pair kernel;
  ConvAttributes conv;
  DataType dtype;
  Grade grade;
};

int64_t Taps(const WindowWork& work) { return work.kernel[0] * work.kernel[1]; }

// In vectors that windows of one vector of results cover, about.
int64_t ElementsOfRow(const WindowWork& work) {
  return RoundUp((work.kernel[1] - 1) * work.conv.dilation[1] + 2 * kVector,
                 kVector);
}

// Products with an element of the vector that are written out, of each channel.
int64_t Products(const WindowWork& work, int64_t rows) {
  return rows * work.output[1] * Taps(work);
}

// Whether other convolutions of signals would have to keep their row for it,
// which gain more by several (fold_signals.h): where warpgroups compute them.
bool HindersOthers(const LoweredPlan& plan, const WindowWork& work,
                   const Target& target) {
  return target.arch == "sm_90a" && work.input[2] == 1 &&
         std::count_if(plan.nodes.begin(), plan.nodes.end(),
                       [](const Node& node) { return node.IsConvolution(); }) >
             1;
}

bool AreTaken(const WindowWork& work) {
  return work.conv.groups == 1 && work.conv.stride == Pair{1, 1} &&
         Taps(work) > 1 && work.input[3] % kVector == 0 &&
         work.output[3] % kVector == 0 &&
         ElementsOfRow(work) <= kMostElements &&
         Products(work, 1) <= kMostUnrolled;
}

bool AreFewResults(const WindowWork& work) {
  const int64_t results = work.output[1];
  const bool has_words = work.dtype == DataType::kF32;
  if (work.input[1] <= kFewChannels) {
    return results <= (has_words ? kMostOfFewF32 : kMostOfFew16Bits);
  }
  if (has_words && work.grade != Grade::kTf32) return results <= kMostOfF32;
  return results <= (has_words ? kMostOfTf32 : kMostOf16Bits) &&
         results * Taps(work) <= kMostProducts;
}

// Whether results may go through memory before they are reduced, which tensor
// cores' kernels do on chip.
bool MayBeReducedLater(const WindowWork& work) {
  return work.dtype == DataType::kF32 &&
         AreSmallBeside(work.output[1], work.input[1] * Taps(work));
}

// Whether a slice would wait for its channels much longer than the memory is
// busy.
bool WaitsForChannels(const WindowWork& work, int64_t channels,
                      int64_t sm_count) {
  const bool is_tf32 =
      work.dtype == DataType::kF32 && work.grade == Grade::kTf32;
  return TakeTooManyTurns(
      channels, NumElements(work.input) * ElementSize(work.dtype), sm_count,
      is_tf32 ? kTimesMemoryOfTf32 : kTimesMemory);
}

int64_t Threads(const WindowWork& work, int64_t rows) {
  return work.input[0] * CeilDiv(work.output[2], rows) * work.output[3] /
         kVector;
}

DirectTile TileOf(const WindowWork& work, int64_t sm_count) {
  const int64_t results = work.output[1];
  const int64_t channels = work.input[1];
  const int64_t enough = sm_count * kEnoughThreads;
  int64_t rows = kMostRows;
  while (rows > 1 && (rows > work.output[2] || rows * results > kMostSums ||
                      Products(work, rows) > kMostUnrolled)) {
    rows /= 2;
  }
  while (rows > 1 && Threads(work, rows) * 2 < enough) rows /= 2;
  int64_t slices = 1;
  while (2 * slices <= channels && kThreads / slices > kWarp &&
         (Threads(work, rows) * slices < enough ||
          channels * Taps(work) > slices * kMostOfSum)) {
    slices *= 2;
  }
  const int64_t weights =
      channels * work.kernel[0] * RoundUp(results * work.kernel[1], 4);
  const int64_t sums = results * rows * kVector * kThreads;
  DirectTile tile;
  tile.threads = kThreads;
  tile.vector = kVector;
  tile.blocks = CeilDiv(Threads(work, rows), kThreads / slices);
  tile.min_blocks = kBlocksAtOnce;
  tile.shared_bytes = 4 * std::max(weights, sums);
  tile.part = WindowTile{static_cast<int>(rows), static_cast<int>(slices)};
  return tile;
}

}  // namespace

std::optional<DirectTile> NarrowWindowTile(const LoweredPlan& plan,
                                           const Node& conv, Grade grade,
                                           const Target& target) {
  if (conv.kind != NodeKind::kConv2d) return std::nullopt;
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const Dims& weights = plan.values[ValueOf(conv.operands[1])].desc.dims;
  const WindowWork work = {input.dims,
                           plan.values[conv.results[0]].desc.dims,
                           {weights[2], weights[3]},
                           std::get<ConvAttributes>(conv.attributes),
                           input.dtype,
                           grade};
  if (!AreTaken(work) || !AreFewResults(work)) return std::nullopt;
  if (HindersOthers(plan, work, target)) return std::nullopt;
  if (IsReducedBehind(plan, conv) && !MayBeReducedLater(work)) {
    return std::nullopt;
  }
  const int64_t sm_count = MultiprocessorsOf(target);
  const DirectTile tile = TileOf(work, sm_count);
  if (tile.shared_bytes > kMostSharedBytes ||
      WaitsForChannels(work,
                       CeilDiv(work.input[1], tile.As<WindowTile>()->slices),
                       sm_count)) {
    return std::nullopt;
  }
  return tile;
}

}  // namespace kiln
