#include "jit/compile/conv_geometry.h"

#include <algorithm>
#include <limits>

namespace kiln {
namespace {

constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max() / 2;
// Cycles of a multiprocessor for one product of 16 x 8 x 8; words that it
// brings from memory to shared memory in a cycle.
constexpr double kCyclesPerProduct = 1.7;
constexpr double kWordsPerCycle = 8.0;
// Of a block: waiting for its first patch, its barriers, its tail.
constexpr double kCyclesPerBlock = 3000.0;
constexpr double kCyclesPerStage = 400.0;
// Accumulators that leave a thread enough registers for the rest.
constexpr int kMaxFragments = 16;
// Blocks that share a multiprocessor hide each other's waiting.
constexpr int kResidentBlocks = 2;
constexpr int64_t kSharedPerBlockReserved = 1024;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int ComputeCapability(const Target& target) {
  return target.arch.rfind("sm_", 0) == 0 ? std::stoi(target.arch.substr(3))
                                          : 0;
}

int64_t Patch(const ConvGeometry& g, int axis) {
  const int64_t tile = axis == 0 ? g.tile_h : g.tile_w;
  return (tile - 1) * g.problem.stride[axis] +
         (g.problem.kernel[axis] - 1) * g.problem.dilation[axis] + 1;
}

// Words between the patches of two channels.
int64_t PatchPitch(const ConvGeometry& g) {
  return (Patch(g, 0) * Patch(g, 1) + 23) / 32 * 32 + 8;
}

int Products(const ConvGeometry& g) {
  return 1 + (g.splits_input ? 1 : 0) + (g.splits_weight ? 1 : 0);
}

// Cycles until the last block is done: what the choice minimises. A model,
// good for comparing tiles of one convolution.
double Cycles(const ConvGeometry& g, int sm_count) {
  const double steps = static_cast<double>(g.chunks() * g.steps());
  const double fragments = g.tiles_m * g.tiles_n;
  const double multiply = fragments * Products(g) * kCyclesPerProduct;
  const double read = (g.splits_input ? 8 : 4) * g.tiles_m + (g.splits_weight ? 4 : 2) * g.tiles_n;
  const double warps = g.warps_m * g.warps_n;
  const double compute =
      steps * warps * (std::max(multiply, read) + 0.3 * std::min(multiply, read));
  const double words =
      static_cast<double>(g.chunks() * g.chunk * PatchPitch(g)) +
      (g.chunks() > 1 ? static_cast<double>(g.chunks() * g.weight_words()) / 4
                      : 0.0);
  const double stages = static_cast<double>(g.chunks()) * kCyclesPerStage;
  const double tile =
      kResidentBlocks * (compute + words / kWordsPerCycle) + stages;
  const double block = kCyclesPerBlock + tile * g.tiles_per_block;
  const int64_t waves =
      CeilDiv(g.blocks(), static_cast<int64_t>(sm_count) * kResidentBlocks);
  return static_cast<double>(waves) * block;
}

class Choice {
 public:
  Choice(const ConvProblem& problem, const ConvDemands& demands, Grade grade,
         const Target& target)
      : demands_(demands), target_(target) {
    base_.problem = problem;
    base_.splits_input =
        grade == Grade::kFp32 && problem.input_type == DataType::kF32;
    base_.splits_weight =
        grade == Grade::kFp32 && problem.weight_type == DataType::kF32;
  }

  std::optional<ConvGeometry> Run() {
    for (const int warps_n : {1, 2, 4, 8}) {
      for (const int warps_m : {8, 4, 2, 1}) {
        for (const int tiles_n : {16, 8, 7, 6, 5, 4, 3, 2, 1})
          TryWarps(warps_m, warps_n, tiles_n);
      }
    }
    return best_;
  }

 private:
  void TryWarps(int warps_m, int warps_n, int tiles_n) {
    ConvGeometry g = base_;
    g.warps_m = warps_m;
    g.warps_n = warps_n;
    g.tiles_n = tiles_n;
    const int64_t fragments = CeilDiv(g.problem.group_outputs(), 8);
    const int64_t together = static_cast<int64_t>(warps_n) * tiles_n;
    if (warps_m * warps_n > 8) return;
    if (demands_.all_channels_in_a_block && together < fragments) return;
    if (together > fragments &&
        together != CeilDiv(fragments, warps_n) * warps_n) {
      return;
    }
    const int64_t group = demands_.group_channels;
    if (group != 0 && g.block_channels() % group != 0 &&
        group % g.block_channels() != 0) {
      return;
    }
    for (const int tiles_m : {1, 2, 3, 4}) {
      if (tiles_m * tiles_n > kMaxFragments) continue;
      g.tiles_m = tiles_m;
      TryTiles(g);
    }
  }

  void TryTiles(ConvGeometry g) {
    const int pixels = g.warps_m * g.tiles_m * 16;
    for (const int width : {8, 16, 32, 64}) {
      if (pixels % width != 0) continue;
      g.tile_w = width;
      g.tile_h = pixels / width;
      if (g.tile_h % demands_.window[0] != 0 ||
          g.tile_w % demands_.window[1] != 0) {
        continue;
      }
      TryChunks(g);
    }
  }

  void TryChunks(ConvGeometry g) {
    const int64_t inputs = g.problem.group_inputs();
    for (const int chunk : {1, 2, 3, 4, 8, 16, 32}) {
      if (chunk > inputs && chunk >= 2 * inputs) continue;
      if (inputs >= 8 && chunk < 4) continue;
      g.chunk = chunk;
      const int64_t limit =
          MaxSharedBytes(target_) / kResidentBlocks - kSharedPerBlockReserved;
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
    const int64_t pixels = g.tile_h * g.tile_w;
    const int64_t pool = g.warps_n * 8 * (pixels + 32) * 4;
    const int64_t channels = (g.warps_n - 1) * pixels * 12;
    return std::max({moments, pool, channels});
  }

  void Compare(const ConvGeometry& g) {
    if (g.blocks() > kMaxOffset || g.packed_bytes() > kMaxOffset) return;
    const double cycles = Cycles(g, std::max(target_.sm_count, 1));
    if (best_.has_value() && cycles >= best_cycles_) return;
    best_ = g;
    best_cycles_ = cycles;
  }

  const ConvDemands demands_;
  const Target& target_;
  ConvGeometry base_;
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
int64_t ConvGeometry::shared_words() const {
  return (splits_input ? 4 : 3) * chunk * PatchPitch(*this) +
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
                                               Grade grade,
                                               const Target& target) {
  if (ComputeCapability(target) < 80) return std::nullopt;
  if (problem.groups > 1 && problem.group_inputs() < 4) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = problem.output[2 + i] * problem.stride[i] +
                          problem.kernel[i] * problem.dilation[i] +
                          2 * std::abs(problem.padding[i]);
    if (reach > kMaxOffset) return std::nullopt;
  }
  return Choice(problem, demands, grade, target).Run();
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
