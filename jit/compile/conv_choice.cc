#include "jit/compile/conv_choice.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_search.h"

namespace kiln {
namespace {

constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max() / 2;
constexpr int64_t kSharedPerBlockReserved = 1024;
constexpr int64_t kRegisters = 65536;  // of a multiprocessor
constexpr int64_t kMaxRegisters = 255;
// With fewer threads there are too few warps to hide latencies.
constexpr int kFewestResidentThreads = 256;
// Of a thread, for all but the sums.
constexpr int64_t kFewestRegisters = 40;
constexpr int64_t kRegistersBesideSums = 64;
constexpr int64_t kAmpleRegisters = 32;
constexpr int64_t kRegistersOfFragments = 8;  // of A, where warps multiply
constexpr int64_t kMaxSums = 96;
constexpr int64_t kMaxWarpgroupColumns = 256;
constexpr int64_t kMaxUnrolledSteps = 64;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

int ComputeCapability(const Target& target) {
  return target.arch.rfind("sm_", 0) == 0 ? std::stoi(target.arch.substr(3))
                                          : 0;
}

// Tries tiles, keeps the fastest.
class Choice {
 public:
  Choice(const ConvProblem& problem, const ConvDemands& demands,
         const ConvOptions& options)
      : demands_(demands), options_(options) {
    base_.problem = problem;
    const bool is_f32 = problem.input_type == DataType::kF32;
    base_.splits_input = options.grade == Grade::kFp32 && is_f32;
    base_.splits_weight =
        options.grade == Grade::kFp32 && problem.weight_type == DataType::kF32;
    can_copy_four_ =
        is_f32 && problem.input[3] % 4 == 0 && problem.insert == Pair{1, 1};
  }

  std::optional<ConvGeometry> Run() {
    if (options_.target.arch == "sm_90a" &&
        base_.problem.stride == Pair{1, 1}) {
      for (const int warpgroups : {1, 2, 3, 4}) TryWarpgroups(warpgroups);
    }
    for (const int warps_n : {1, 2, 4, 8}) {
      for (const int warps_m : {8, 4, 2, 1}) {
        if (warps_m * warps_n > 8) continue;
        ConvGeometry g = base_;
        g.warps_m = warps_m;
        g.warps_n = warps_n;
        TryChannels(g);
      }
    }
    return best_;
  }

 private:
  void TryWarpgroups(int warpgroups) {
    ConvGeometry g = base_;
    g.warpgroups = warpgroups;
    g.warps_m = 4 * warpgroups;
    g.warps_n = 1;
    TryChannels(g);
  }

  void TryChannels(ConvGeometry g) {
    const int64_t fragments = CeilDiv(g.problem.group_outputs(), 8);
    const int64_t group = demands_.group_channels;
    for (const int tiles_n : {32, 16, 8, 7, 6, 5, 4, 3, 2, 1}) {
      const int64_t together = int64_t{g.warps_n} * tiles_n;
      if (together > RoundUp(fragments, g.warps_n)) continue;
      g.tiles_n = tiles_n;
      if (demands_.all_channels_in_a_block && together < fragments) continue;
      if (group != 0 && g.block_channels() % group != 0 &&
          group % g.block_channels() != 0) {
        continue;
      }
      TryRows(g);
    }
  }

  void TryRows(ConvGeometry g) {
    const int64_t parts = g.warpgroups > 0 && g.splits_weight ? 2 : 1;
    if (g.warpgroups > 0 && parts * g.block_channels() > kMaxWarpgroupColumns) {
      return;
    }
    for (const int tiles_m : {1, 2, 3, 4}) {
      g.tiles_m = tiles_m;
      for (const int resident : {1, 2}) {
        g.resident_blocks = resident;
        if (g.warpgroups > 0) {
          TryRuns(g);
        } else {
          TryTiles(g);
        }
      }
    }
  }

  // Whether a thread has the registers for its sums. Where operands are split
  // those of several chunks are added outside the tensor cores; a reduction
  // over channels needs its values all at once.
  bool SumsFit(const ConvGeometry& g) const {
    int64_t parts = demands_.all_channels_in_a_block ? 2 : 1;
    if (g.warpgroups > 0 && (g.splits_weight || g.splits_input)) {
      parts = std::max<int64_t>(
          parts, (g.splits_weight ? 2 : 1) + (g.chunks() > 1 ? 1 : 0));
    }
    if (g.resident_blocks > 1 && g.threads() < kFewestResidentThreads) {
      return false;
    }
    const int64_t registers = std::min(
        kRegisters / (int64_t{g.threads()} * g.resident_blocks), kMaxRegisters);
    const int64_t sums = g.tiles_m * g.tiles_n * 4 * parts;
    const int64_t rest = RegistersBesideSums(g) +
                         (options_.ample_registers ? kAmpleRegisters : 0);
    return sums <= kMaxSums && sums + rest <= registers;
  }

  // Of a thread, for statistics, fragments and all else.
  int64_t RegistersBesideSums(const ConvGeometry& g) const {
    const int64_t group = demands_.group_channels;
    const int64_t statistics =
        group == 0 ? 0 : g.tiles_n * (group % 2 == 0 ? 1 : 2) * 3;
    if (g.warpgroups > 0) {
      return std::max<int64_t>(kRegistersBesideSums,
                               kFewestRegisters + statistics);
    }
    return kRegistersOfFragments + kFewestRegisters + statistics +
           g.tiles_n * (g.splits_weight ? 4 : 2);
  }

  // Tiles of warps: all rows are pixels.
  void TryTiles(ConvGeometry g) {
    for (const int width : {8, 16, 32, 64}) {
      if (g.rows() % width != 0) continue;
      g.tile_w = width;
      g.tile_h = static_cast<int>(g.rows() / width);
      TryCopies(g);
    }
  }

  // Tiles of warpgroups: rows are a run of the patch.
  void TryRuns(ConvGeometry g) {
    const int64_t width = g.problem.output[3];
    std::vector<int64_t> widths = {width};
    for (const int64_t patch : {16, 24, 32, 48, 64, 96, 128, 192, 256}) {
      widths.push_back((patch - g.halo(1) - g.problem.padding[1] % 4) / 4 * 4);
    }
    for (const int64_t tile_w : widths) {
      if (tile_w < 1 || tile_w > width) continue;
      g.tile_w = static_cast<int>(tile_w);
      g.copies_four = can_copy_four_;
      const int64_t most = g.rows() / g.patch_width();
      for (int64_t tile_h = most; tile_h > std::max<int64_t>(most - 4, 0);
           --tile_h) {
        if (tile_h > g.problem.output[2] + 3) continue;
        g.tile_h = static_cast<int>(tile_h);
        TryCopies(g);
      }
    }
  }

  void TryCopies(ConvGeometry g) {
    if (g.tile_h % demands_.window[0] != 0) return;
    if (g.tile_w % demands_.window[1] != 0 && g.tiles_across() > 1) return;
    g.copies_four = can_copy_four_ && (g.tiles_across() == 1 ||
                                       g.tile_w * g.problem.stride[1] % 4 == 0);
    if (g.warpgroups > 0 && g.tile_h * g.patch_width() > g.rows()) return;
    TryChunks(g);
  }

  void TryChunks(ConvGeometry g) {
    const int64_t inputs = g.problem.group_inputs();
    for (const int chunk : {1, 2, 3, 4, 8, 16, 32}) {
      if (chunk > inputs && chunk >= 2 * inputs && chunk != 4) continue;
      if (inputs >= 8 && chunk < 4) continue;
      if (g.warpgroups > 0 && chunk % 4 != 0) continue;
      g.chunk = chunk;
      if (g.warpgroups > 0 && (g.steps() > kMaxUnrolledSteps ||
                               chunk * g.problem.taps() % 8 != 0)) {
        continue;
      }
      if (!SumsFit(g)) {
        if (options_.search != nullptr) options_.search->LacksRegisters(g);
        continue;
      }
      const bool overlaps = g.warpgroups > 0 && g.resident_blocks == 1;
      g.split_stages = overlaps ? 2 : 1;
      const int64_t limit =
          MaxSharedBytes(options_.target) / g.resident_blocks -
          kSharedPerBlockReserved;
      if (g.shared_words() * 4 + TailBytes(g) > limit) {
        if (options_.search != nullptr) options_.search->LacksSharedMemory(g);
        continue;
      }
      for (const int tiles : {1, 2, 4, 8}) {
        g.tiles_per_block = tiles;
        Compare(g);
      }
    }
  }

  // At most; the largest of what conv_tails.cuh may ask for.
  static int64_t TailBytes(const ConvGeometry& g) {
    const int64_t moments = g.warps_m * g.block_channels() * 12;
    const int64_t pixels = int64_t{g.tile_h} * g.tile_w;
    const int64_t pool = g.warps_n * 8 * (pixels + 3 * g.tile_h + 32) * 4;
    const int64_t channels = (g.warps_n - 1) * pixels * 12;
    return std::max({moments, pool, channels});
  }

  void Compare(const ConvGeometry& g) {
    if (g.blocks() > kMaxOffset || g.packed_bytes() > kMaxOffset) return;
    const double cycles = ConvCycles(g, std::max(options_.target.sm_count, 1));
    if (options_.search != nullptr) options_.search->Fits(g, cycles);
    if (best_.has_value() && cycles >= best_cycles_) return;
    best_ = g;
    best_cycles_ = cycles;
  }

  const ConvDemands demands_;
  const ConvOptions& options_;
  ConvGeometry base_;
  bool can_copy_four_ = false;
  std::optional<ConvGeometry> best_;
  double best_cycles_ = 0.0;
};

}  // namespace

std::optional<ConvGeometry> ChooseConvGeometry(const ConvProblem& problem,
                                               const ConvDemands& demands,
                                               const ConvOptions& options) {
  if (ComputeCapability(options.target) < 80) return std::nullopt;
  if (problem.groups > 1 && problem.group_inputs() < 4) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = problem.output[2 + i] * problem.stride[i] +
                          problem.kernel[i] * problem.dilation[i] +
                          2 * std::abs(problem.padding[i]);
    if (reach > kMaxOffset) return std::nullopt;
  }
  return Choice(problem, demands, options).Run();
}

int64_t MaxSharedBytes(const Target& target) {
  switch (ComputeCapability(target)) {
    case 80:
    case 87:
      return int64_t{163} * 1024;
    case 90:
    case 100:
      return int64_t{227} * 1024;
    default:
      return int64_t{99} * 1024;
  }
}

}  // namespace kiln
