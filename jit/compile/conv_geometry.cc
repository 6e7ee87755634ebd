#include "jit/compile/conv_geometry.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace kiln {
namespace {

constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max() / 2;
constexpr int64_t kSharedPerBlockReserved = 1024;
constexpr int64_t kRegisters = 65536;  // of a multiprocessor
constexpr int64_t kMaxRegisters = 255;
// With fewer threads there are too few warps to hide latencies.
constexpr int kFewestResidentThreads = 256;
// Of a thread, for all but the sums.
constexpr int64_t kRegistersBesideSums = 64;
constexpr int64_t kAmpleRegistersBesideSums = 96;
constexpr int64_t kMaxSums = 96;
constexpr int64_t kMaxWarpgroupColumns = 256;
constexpr int64_t kMaxUnrolledSteps = 64;

// The model of Cycles, in cycles of a multiprocessor. Measured on an H100 with
// conv_mma.cu: 2.1 instructions were issued in a cycle, and one product of
// 16 x 8 x 8 took 1.6.
constexpr double kIssuedPerCycle = 2.1;
constexpr double kCyclesPerProduct = 1.6;
constexpr double kInstructionsPerCopy = 22.0;
constexpr double kInstructionsPerSplitFour = 45.0;
constexpr double kInstructionsPerElement = 8.0;
constexpr double kCyclesPerBlock = 4000.0;
constexpr double kCyclesPerStage = 700.0;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

int ComputeCapability(const Target& target) {
  return target.arch.rfind("sm_", 0) == 0 ? std::stoi(target.arch.substr(3))
                                          : 0;
}

// Columns that a patch begins early so that four can be copied at once.
int64_t Lead(const ConvGeometry& g) {
  return g.copies_four ? (4 - g.problem.padding[1] % 4) % 4 : 0;
}

int64_t Halo(const ConvGeometry& g, int axis) {
  return (g.problem.kernel[axis] - 1) * g.problem.dilation[axis];
}

int64_t PatchHeight(const ConvGeometry& g) {
  return (g.tile_h - 1) * g.problem.stride[0] + Halo(g, 0) + 1;
}

int64_t PatchWidth(const ConvGeometry& g) {
  const int64_t needed =
      Lead(g) + (g.tile_w - 1) * g.problem.stride[1] + Halo(g, 1) + 1;
  return g.copies_four ? RoundUp(needed, 4) : needed;
}

int64_t Patch(const ConvGeometry& g) { return PatchHeight(g) * PatchWidth(g); }

// Rows of A: the pixels of a tile, and of warpgroups those of the halo
// between them.
int64_t Rows(const ConvGeometry& g) {
  return int64_t{g.warps_m} * g.tiles_m * 16;
}

// Pixels of the patch that products read.
int64_t Positions(const ConvGeometry& g) {
  const int64_t last = Lead(g) + Halo(g, 0) * PatchWidth(g) + Halo(g, 1);
  return RoundUp(std::max(Patch(g), Rows(g) + last), 8);
}

int Products(const ConvGeometry& g) {
  return 1 + (g.splits_input ? 1 : 0) + (g.splits_weight ? 1 : 0);
}

struct Work {
  double tensor = 0.0;        // cycles of the tensor cores
  double instructions = 0.0;  // of warps
};

// Of multiplying one chunk.
Work ProductWork(const ConvGeometry& g) {
  const double steps = static_cast<double>(g.steps());
  const double warps = g.warps_m * g.warps_n;
  if (g.warpgroups > 0) {
    const double channels = static_cast<double>(g.block_channels());
    const double products = static_cast<double>(Rows(g)) / 64 * steps;
    // Reading A and B takes as long as 64 columns at the least.
    const double columns = (g.splits_weight ? 2 : 1) * channels;
    const double large = std::max(columns / 2, 16 + columns / 4);
    const double small =
        g.splits_input ? std::max(channels / 2, 16 + channels / 4) : 0.0;
    return {products * (large + small), products * 4 * 12};
  }
  const double fragments = g.tiles_m * g.tiles_n;
  const double reads = (g.splits_input ? 12 : 8) * g.tiles_m + g.tiles_n + 5;
  const double adds = g.splits_input || g.splits_weight ? 4 * fragments : 0.0;
  return {warps * steps * fragments * Products(g) * kCyclesPerProduct,
          warps * steps * (reads + adds + fragments * Products(g))};
}

// Cycles until the last block is done: what the choice minimises. A model,
// good for comparing tiles of one convolution.
double Cycles(const ConvGeometry& g, int sm_count) {
  const Work product = ProductWork(g);
  const double patch = static_cast<double>(g.chunk * Patch(g));
  const double copies = patch / (g.copies_four ? 4 : 1) +
                        (g.chunks() > 1 ? g.weight_words() / 4.0 : 0.0);
  const double before = (copies / 32 * kInstructionsPerCopy +
                         patch / 4 / 32 * kInstructionsPerSplitFour) /
                        kIssuedPerCycle;
  const double multiply =
      std::max(product.tensor, product.instructions / kIssuedPerCycle);
  const double chunks = static_cast<double>(g.chunks());
  const double after = static_cast<double>(Rows(g) * g.block_channels()) / 32 *
                       kInstructionsPerElement / kIssuedPerCycle;
  const double waiting = chunks * kCyclesPerStage;
  double tile = 0.0;
  if (g.resident_blocks > 1) {
    // One block's products run during the other's instructions.
    const double issue = chunks * before + after;
    tile = g.resident_blocks * std::max(issue, chunks * multiply) +
           std::min(issue, chunks * multiply) / 2 + waiting;
  } else if (g.split_stages > 1) {
    tile = chunks * std::max(before, multiply) + after + waiting;
  } else {
    tile = chunks * (before + multiply) + after + waiting;
  }
  const double block = kCyclesPerBlock + tile * g.tiles_per_block;
  const int64_t waves =
      CeilDiv(g.blocks(), static_cast<int64_t>(sm_count) * g.resident_blocks);
  return static_cast<double>(waves) * block;
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
        } else if (resident == 2) {
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
    const int64_t rest = options_.ample_registers ? kAmpleRegistersBesideSums
                                                  : kRegistersBesideSums;
    return sums <= kMaxSums && sums + rest <= registers;
  }

  // Tiles of warps: all rows are pixels.
  void TryTiles(ConvGeometry g) {
    for (const int width : {8, 16, 32, 64}) {
      if (Rows(g) % width != 0) continue;
      g.tile_w = width;
      g.tile_h = static_cast<int>(Rows(g) / width);
      TryCopies(g);
    }
  }

  // Tiles of warpgroups: rows are a run of the patch.
  void TryRuns(ConvGeometry g) {
    const int64_t width = g.problem.output[3];
    std::vector<int64_t> widths = {width};
    for (int64_t patch = 16; patch <= 256; patch += 8) {
      widths.push_back((patch - Halo(g, 1) - g.problem.padding[1] % 4) / 4 * 4);
    }
    for (const int64_t tile_w : widths) {
      if (tile_w < 1 || tile_w > width) continue;
      g.tile_w = static_cast<int>(tile_w);
      g.copies_four = can_copy_four_;
      const int64_t most = Rows(g) / PatchWidth(g);
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
    if (g.warpgroups > 0 && g.tile_h * PatchWidth(g) > Rows(g)) return;
    TryChunks(g);
  }

  void TryChunks(ConvGeometry g) {
    const int64_t inputs = g.problem.group_inputs();
    for (const int chunk : {1, 2, 3, 4, 8, 16, 32}) {
      if (chunk > inputs && chunk >= 2 * inputs && chunk != 4) continue;
      if (inputs >= 8 && chunk < 4) continue;
      if (g.warpgroups > 0 && chunk % 4 != 0) continue;
      g.chunk = chunk;
      if (g.warpgroups > 0 && g.steps() > kMaxUnrolledSteps) continue;
      if (!SumsFit(g)) continue;
      g.split_stages = g.resident_blocks == 1 ? 2 : 1;
      const int64_t limit =
          MaxSharedBytes(options_.target) / g.resident_blocks -
          kSharedPerBlockReserved;
      if (g.shared_words() * 4 + TailBytes(g) > limit) continue;
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
    const double cycles = Cycles(g, std::max(options_.target.sm_count, 1));
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

int64_t ConvGeometry::channel_blocks() const {
  return CeilDiv(problem.group_outputs(), block_channels());
}
int64_t ConvGeometry::chunks() const {
  return CeilDiv(problem.group_inputs(), chunk);
}
int64_t ConvGeometry::steps() const {
  return CeilDiv(chunk * problem.taps(), 8);
}
int64_t ConvGeometry::tiles_across() const {
  return CeilDiv(problem.output[3], tile_w);
}
int64_t ConvGeometry::strips() const {
  return CeilDiv(CeilDiv(problem.output[2], tile_h), tiles_per_block);
}
int64_t ConvGeometry::blocks() const {
  return problem.output[0] * problem.groups * channel_blocks() * strips() *
         tiles_across();
}
int64_t ConvGeometry::weight_words() const {
  return steps() * (block_channels() / 8) * 32 * (splits_weight ? 4 : 2);
}
int64_t ConvGeometry::packed_bytes() const {
  return problem.groups * channel_blocks() * chunks() * weight_words() * 4;
}
int64_t ConvGeometry::patch_words() const {
  return chunk * ((Patch(*this) + 23) / 32 * 32 + 8);
}
int64_t ConvGeometry::split_words() const {
  return warpgroups > 0 ? chunk * Positions(*this) : patch_words();
}
int64_t ConvGeometry::shared_words() const {
  return patch_words() + split_stages * (splits_input ? 2 : 1) * split_words() +
         (chunks() > 1 ? 2 : 1) * weight_words() + steps() * 8;
}

int64_t ConvGeometry::Splits(int64_t group_channels) const {
  return strips() * tiles_across() *
         std::max<int64_t>(group_channels / block_channels(), 1);
}

ConvProblem ConvProblemOf(const LoweredPlan& plan, const Node& conv) {
  const auto& attributes = std::get<ConvAttributes>(conv.attributes);
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const TensorDesc& weight = plan.values[ValueOf(conv.operands[1])].desc;
  ConvProblem problem;
  problem.input = AlignDims(input.dims);
  problem.output = AlignDims(plan.values[conv.results[0]].desc.dims);
  problem.groups = attributes.groups;
  problem.kernel = {weight.dims[2], weight.dims[3]};
  problem.dilation = attributes.dilation;
  problem.transposed = conv.kind == NodeKind::kConvTranspose2d;
  problem.input_type = input.dtype;
  problem.weight_type = weight.dtype;
  for (size_t i = 0; i < 2; ++i) {
    if (problem.transposed) {
      problem.insert[i] = attributes.stride[i];
      problem.padding[i] = attributes.dilation[i] * (problem.kernel[i] - 1) -
                           attributes.padding[i];
    } else {
      problem.stride[i] = attributes.stride[i];
      problem.padding[i] = attributes.padding[i];
    }
  }
  return problem;
}

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
