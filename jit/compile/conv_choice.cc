#include "jit/compile/conv_choice.h"

#include <algorithm>
#include <limits>
#include <utility>
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
constexpr int64_t kRegistersBesidePlanes = 56;
constexpr int64_t kRegistersOfProduct = 16;
constexpr int kMaxColumns = 256;    // of a warpgroup's product
constexpr int kMaxColumnsOfPlanes = 128;
constexpr int kMaxWarpgroups = 3;   // that multiply, in a block
constexpr int kMaxStages = 4;
constexpr int64_t kMaxProducts = 96;  // of a chunk, unrolled

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
    if (SuitsWarpgroups()) TryWarpgroups();
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
  // Phases of a transposed convolution need equally many taps each, or there
  // would be products that the convolution does not have.
  bool SuitsWarpgroups() const {
    const ConvProblem& p = base_.problem;
    for (size_t i = 0; i < 2; ++i) {
      if (p.insert[i] == 1) continue;
      if (p.kernel[i] % p.insert[i] != 0 || p.dilation[i] != 1) return false;
      if (demands_.window[i] != 1) return false;
    }
    return options_.target.arch == "sm_90a";
  }

  void TryWarpgroups() {
    for (const auto& [m, n] : {std::pair(1, 1), {2, 1}, {1, 2}, {3, 1}, {1, 3}}) {
      for (const auto& [resident, producers] : {std::pair(1, 2), {1, 1}, {2, 1}}) {
        ConvGeometry g = base_;
        g.groups_m = m;
        g.groups_n = n;
        g.resident_blocks = resident;
        g.producers = producers;
        TryPixelRows(g);
        if (!demands_.all_channels_in_a_block) TryChannelRows(g);
      }
    }
  }

  // Widths of tiles that share a row of the output equally.
  std::vector<int> TileWidths(const ConvGeometry& g) const {
    const int64_t width = CeilDiv(g.problem.output[3], g.phases(1));
    std::vector<int> widths;
    for (int64_t across = 1; across <= 16; ++across) {
      const int64_t each = RoundUp(CeilDiv(width, across), demands_.window[1]);
      const int tile_w = static_cast<int>(across == 1 ? width : each);
      if (widths.empty() || widths.back() != tile_w) widths.push_back(tile_w);
    }
    return widths;
  }

  bool KeepsGroupsWhole(const ConvGeometry& g) const {
    const int64_t group = demands_.group_channels;
    return group == 0 || g.block_channels() % group == 0 ||
           group % g.block_channels() == 0;
  }

  void TryPixelRows(ConvGeometry g) {
    const int64_t fragments = CeilDiv(g.problem.group_outputs(), 8);
    for (const int tiles_n : {32, 24, 16, 12, 8, 7, 6, 5, 4, 3, 2, 1}) {
      const int64_t together = int64_t{g.groups_n} * tiles_n;
      if (together > RoundUp(fragments, g.groups_n)) continue;
      if (demands_.all_channels_in_a_block && together < fragments) continue;
      g.tiles_n = tiles_n;
      if (!KeepsGroupsWhole(g)) continue;
      for (const int tiles_m : {1, 2, 3}) {
        g.tiles_m = tiles_m;
        for (const int tile_w : TileWidths(g)) TryRunOfRows(g, tile_w);
      }
    }
  }

  void TryRunOfRows(ConvGeometry g, int tile_w) {
    g.tile_w = tile_w;
    g.pitch = static_cast<int>(tile_w + g.halo(1));
    if (tile_w > g.rows()) return;
    const int64_t height = CeilDiv(g.problem.output[2], g.phases(0));
    const int64_t rows = (g.rows() - tile_w) / g.pitch + 1;
    g.tile_h = static_cast<int>(
        std::min(rows, RoundUp(height, demands_.window[0])) /
        demands_.window[0] * demands_.window[0]);
    if (g.tile_h > 0) TryDepths(g);
  }

  // Runs are whole rows of a multiple of eight positions, so that places in
  // them are known when the kernel is compiled.
  void TryChannelRows(ConvGeometry g) {
    g.channel_rows = true;
    g.tiles_m = 1;
    if (g.block_channels() >= g.problem.group_outputs() + 64) return;
    if (!KeepsGroupsWhole(g)) return;
    for (const int tile_w : TileWidths(g)) {
      g.pitch = static_cast<int>(RoundUp(tile_w + g.halo(1), 8));
      const int64_t across = CeilDiv(
          CeilDiv(g.problem.output[3], g.phases(1)), int64_t{tile_w});
      g.tile_w = across == 1
                     ? tile_w
                     : static_cast<int>((g.pitch - g.halo(1)) /
                                        demands_.window[1] *
                                        demands_.window[1]);
      const int64_t height = CeilDiv(g.problem.output[2], g.phases(0));
      const bool in_registers = demands_.has_statistics && demands_.ops == 0;
      const int most = in_registers ? kMaxColumns : kMaxColumnsOfPlanes;
      for (int rows = static_cast<int>(demands_.window[0]);
           rows * g.pitch <= most;
           rows += static_cast<int>(demands_.window[0])) {
        if (rows > RoundUp(height, demands_.window[0])) break;
        g.tiles_n = rows * g.pitch / 8;
        g.tile_h = rows * g.groups_n;
        TryDepths(g);
      }
    }
  }

  void TryDepths(ConvGeometry g) {
    const int64_t inputs = g.problem.group_inputs();
    for (const int chunk : {8, 16, 32}) {
      if (chunk > 8 && chunk >= 2 * inputs) break;
      g.chunk = chunk;
      const int64_t parts = g.input_parts() + g.weight_parts() - 1;
      if (g.steps() * g.tiles_m * parts > kMaxProducts) break;
      if (!HalvesFollow(g)) continue;
      if (!GroupSumsFit(g)) {
        if (options_.search != nullptr) options_.search->LacksRegisters(g);
        continue;
      }
      for (const bool keeps : {true, false}) {
        g.keeps_weights = keeps;
        TryStages(g);
      }
    }
  }

  // A matrix's second half lies behind its first.
  static bool HalvesFollow(const ConvGeometry& g) {
    if (g.chunk % 16 == 0) return true;  // of the same pixels
    for (int64_t step = 0; step < g.steps(); ++step) {
      if (g.has_empty_half() && step == g.steps() - 1) break;
      if (g.OffsetOf(2 * step + 1) <= g.OffsetOf(2 * step)) return false;
    }
    return true;
  }

  bool GroupSumsFit(const ConvGeometry& g) const {
    const int64_t sums = int64_t{g.tiles_m} * g.tiles_n * 4;
    // One instruction must fit before registers have moved.
    if (g.tiles_n * 4 + kRegistersOfProduct > g.launch_registers()) {
      return false;
    }
    const int64_t ample = options_.ample_registers ? kAmpleRegisters : 0;
    int64_t parts = g.sums_chunks() ? 2 : 1;
    int64_t beside = kRegistersBesidePlanes;
    if (!g.channel_rows) {
      if (demands_.all_channels_in_a_block) parts = 2;
      beside = RegistersBesideSums(g);
      if (sums > kMaxSums) return false;
    }
    return sums * parts + beside + ample <= g.consumer_registers();
  }

  void TryStages(ConvGeometry g) {
    const int64_t limit =
        MaxSharedBytes(options_.target) / g.resident_blocks -
        kSharedPerBlockReserved - TailBytes(g);
    for (g.stages = kMaxStages; g.stages >= 2; --g.stages) {
      if (g.shared_bytes() > limit) continue;
      for (const int tiles : {1, 2, 4, 8}) {
        g.tiles_per_block = tiles;
        Compare(g);
      }
      return;
    }
    if (options_.search != nullptr) options_.search->LacksSharedMemory(g);
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
    for (const int tiles_m : {1, 2, 3, 4}) {
      g.tiles_m = tiles_m;
      for (const int resident : {1, 2}) {
        g.resident_blocks = resident;
        TryTiles(g);
      }
    }
  }

  // Whether a thread has the registers for its sums. A reduction over channels
  // needs its values all at once.
  bool SumsFit(const ConvGeometry& g) const {
    const int64_t parts = demands_.all_channels_in_a_block ? 2 : 1;
    if (g.resident_blocks > 1 && g.threads() < kFewestResidentThreads) {
      return false;
    }
    const int64_t registers = std::min(
        kRegisters / (g.threads() * g.resident_blocks), kMaxRegisters);
    const int64_t sums = int64_t{g.tiles_m} * g.tiles_n * 4 * parts;
    const int64_t rest = RegistersBesideSums(g) +
                         (options_.ample_registers ? kAmpleRegisters : 0);
    return sums <= kMaxSums && sums + rest <= registers;
  }

  // Of a thread, for statistics, fragments and all else.
  int64_t RegistersBesideSums(const ConvGeometry& g) const {
    const int64_t group = demands_.group_channels;
    const int64_t statistics =
        group == 0 ? 0 : g.tiles_n * (group % 2 == 0 ? 1 : 2) * 3;
    if (g.has_groups()) {
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

  void TryCopies(ConvGeometry g) {
    if (g.tile_h % demands_.window[0] != 0) return;
    if (g.tile_w % demands_.window[1] != 0 && g.tiles_across() > 1) return;
    g.copies_four = can_copy_four_ && (g.tiles_across() == 1 ||
                                       g.tile_w * g.problem.stride[1] % 4 == 0);
    TryChunks(g);
  }

  void TryChunks(ConvGeometry g) {
    const int64_t inputs = g.problem.group_inputs();
    for (const int chunk : {1, 2, 3, 4, 8, 16, 32}) {
      if (chunk > inputs && chunk >= 2 * inputs && chunk != 4) continue;
      if (inputs >= 8 && chunk < 4) continue;
      g.chunk = chunk;
      if (!SumsFit(g)) {
        if (options_.search != nullptr) options_.search->LacksRegisters(g);
        continue;
      }
      const int64_t limit =
          MaxSharedBytes(options_.target) / g.resident_blocks -
          kSharedPerBlockReserved;
      if (g.shared_bytes() + TailBytes(g) > limit) {
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
    if (g.channel_rows) return g.plane_bytes() + g.state_bytes();
    const int64_t warps_m = g.rows() / (16 * g.tiles_m);
    const int64_t warps_n = g.block_channels() / (8 * g.tiles_n);
    const int64_t moments = warps_m * g.block_channels() * 12;
    const int64_t pixels = int64_t{g.tile_h} * g.tile_w;
    const int64_t pool = warps_n * 8 * (pixels + 3 * g.tile_h + 32) * 4;
    const int64_t channels = (warps_n - 1) * pixels * 12;
    return std::max({moments, pool, channels});
  }

  void Compare(const ConvGeometry& g) {
    if (const char* force = getenv("KF")) {
      int cr = -1, gm = -1, gn = -1, res = -1, tm = -1, tn = -1, tpb = -1,
          pitch = -1, prod = -1, chunk = -1;
      sscanf(force, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", &cr, &gm, &gn, &res, &tm, &tn,
             &tpb, &pitch, &prod, &chunk);
      const auto bad = [](int want, int have) {
        return want >= 0 && want != have;
      };
      if (!g.has_groups() || bad(cr, g.channel_rows) || bad(gm, g.groups_m) ||
          bad(gn, g.groups_n) || bad(res, g.resident_blocks) ||
          bad(tm, g.tiles_m) || bad(tn, g.tiles_n) ||
          bad(tpb, g.tiles_per_block) || bad(pitch, g.pitch) || bad(prod, g.producers) || bad(chunk, g.chunk))
        return;
    }
    if (g.blocks() > kMaxOffset || g.packed_bytes() > kMaxOffset) return;
    const double cycles = ConvCycles(g, demands_, std::max(options_.target.sm_count, 1));
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
