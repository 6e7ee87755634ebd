#include "jit/compile/linear_tile.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/compute_capability.h"
#include "jit/compile/dense_tile.h"
#include "jit/compile/direct_cost.h"
#include "jit/compile/linear_cost.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"
#include "jit/compile/warpgroup_text.h"

namespace kiln {
namespace {

constexpr int64_t kBytes = 2;  // of a number
constexpr int64_t kOctet = 8;
constexpr int64_t kAlignment = 16;
constexpr int64_t kThreads = 128;
constexpr int64_t kProducers = 64;        // threads that bring chunks
constexpr int64_t kBulkProducers = 32;    // of rows in parts
constexpr int64_t kBytesOfBarriers = 16;  // of a stage
constexpr int64_t kMostStages = 8;
// Of a multiprocessor, of which blocks that share it have a part each, less
// what is reserved.
constexpr int64_t kSharedBytes = 228 * 1024;
constexpr int64_t kReservedBytes = 1024;
constexpr int64_t kRegisters = 65536;
// Of a thread, beside its sums, of which it has so many at most.
constexpr int64_t kOtherRegisters = 38;
constexpr int64_t kMoreOfSplit = 10;  // where factors are beside them
constexpr int64_t kMoreOfKept = 12;   // where a block has many tiles
constexpr int64_t kMostSums = 128;
constexpr int64_t kOfThread = 255;
constexpr int kMostAtOnce = 6;  // blocks of a multiprocessor
// Of a tile of rows in parts: of more, their factors leave no registers.
constexpr int kMostSplitImages = 192;
// Of weights, that may stay in an L2 of 50 MB until they are read again.
constexpr int64_t kKeptBytes = 32 << 20;
// Of a multiprocessor, that are left to lanes.
constexpr int64_t kMostProductsOfLanes = int64_t{1} << 17;
// Of a row that no copies fit, and threads load.
constexpr int64_t kMostOddInputs = 512;
// Of layers whose rows are split before.
constexpr int64_t kFewestSplitImages = 16;
constexpr int64_t kNarrow = 128;
constexpr int64_t kManyImages = 16384;
constexpr int64_t kMostOfAxis = int64_t{1}
                                << 30;  // which are counted in 32 bits
constexpr int64_t kMostBlocks = int64_t{1} << 30;

int64_t ThreadsOf(const LinearTile& tile) {
  return tile.warpgroups * kThreads +
         (tile.halves > 0 ? kBulkProducers : kProducers);
}

// Of a thread; where numbers have two parts, those of a chunk are apart.
int64_t SumsOf(const LinearTile& tile) {
  return int64_t{tile.images} / 2 * std::max(tile.halves, 1);
}

int64_t BytesOfSums(const LinearTile& tile) {
  return 4 * int64_t{tile.images} * (tile.warpgroups * kLinearChannels + 4);
}

// All tiles, the fastest first.
class Search {
 public:
  Search(const LinearWork& work, const Target& target, int spare_registers)
      : work_(work),
        spare_registers_(spare_registers),
        sm_count_(MultiprocessorsOf(target)),
        most_shared_(MaxSharedBytes(target)) {}

  std::vector<LinearWay> Run() && {
    for (const int images : {8, 16, 32, 64, 96, 128, 192, 256}) {
      for (const int warpgroups : {1, 2, 4}) {
        for (const int parts : {1, 2, 4, 8}) {
          LinearTile tile{warpgroups, images, 0, parts};
          tile.halves = work_.halves;
          if (IsOfUse(tile)) TryAll(tile);
        }
        LinearTile keeper{warpgroups, images};
        keeper.halves = work_.halves;
        keeper.keeps_weights = true;
        if (HasAllChannels(keeper)) TryAll(keeper);
      }
      // The least that has all of them.
      if (images >= work_.images) break;
    }
    std::stable_sort(ways_.begin(), ways_.end(),
                     [](const LinearWay& a, const LinearWay& b) {
                       return *a.cycles < *b.cycles;
                     });
    return std::move(ways_);
  }

 private:
  // Whether a tile has all channels, and no more than that needs.
  bool HasAllChannels(const LinearTile& tile) const {
    const int64_t channels = tile.warpgroups * kLinearChannels;
    return work_.results <= channels &&
           (tile.warpgroups == 1 || work_.results > channels / 2);
  }

  // The largest only where all channels must be there.
  bool IsOfUse(const LinearTile& tile) const {
    return tile.warpgroups <= 2 ||
           (work_.feeds && tile.parts == 1 && HasAllChannels(tile));
  }

  void TryAll(const LinearTile& tile) {
    if (SumsOf(tile) > kMostSums) return;
    if (tile.halves > 0 && tile.images > kMostSplitImages) return;
    for (int at_once = 1; at_once <= kMostAtOnce; ++at_once) Try(tile, at_once);
  }

  // Bytes of a block's shared memory.
  int64_t RoomFor(int at_once) const {
    return std::min(most_shared_, kSharedBytes / at_once - kReservedBytes);
  }

  bool HasRegisters(const LinearTile& part, int at_once) const {
    const int64_t others = kOtherRegisters +
                           (part.halves > 0 ? kMoreOfSplit : 0) +
                           (part.keeps_weights ? kMoreOfKept : 0);
    return SumsOf(part) + others + spare_registers_ <=
           std::min(kRegisters / (ThreadsOf(part) * at_once), kOfThread);
  }

  // Blocks that keep weights have two tiles each: of a single one weights
  // would only come before inputs.
  bool HasTiles(const LinearTile& part, int at_once) const {
    const int64_t tiles = LinearBlocks(work_, part);
    return tiles <= kMostBlocks &&
           (!part.keeps_weights || tiles >= 2 * at_once * sm_count_);
  }

  // `at_once`: blocks of a multiprocessor.
  void Try(LinearTile part, int at_once) {
    const int64_t of_part = CeilDiv(work_.chunks(), int64_t{part.parts});
    if ((part.parts - 1) * of_part >= work_.chunks()) return;
    if (!HasRegisters(part, at_once)) return;
    part.stages = static_cast<int>(StagesOf(part, of_part, at_once));
    if (part.stages < std::min<int64_t>(of_part, 2)) return;
    const int64_t shared = SharedBytesOf(part);
    if (shared > RoomFor(at_once) || !HasTiles(part, at_once)) return;
    // Fewer blocks at once have more stages, or they are no others.
    if (at_once < kMostAtOnce && shared <= RoomFor(at_once + 1) &&
        HasRegisters(part, at_once + 1) && HasTiles(part, at_once + 1)) {
      return;
    }
    DirectTile tile;
    tile.threads = static_cast<int>(ThreadsOf(part));
    tile.blocks =
        part.keeps_weights ? at_once * sm_count_ : LinearBlocks(work_, part);
    tile.min_blocks = at_once;
    tile.shared_bytes = shared;
    tile.part = part;
    ways_.push_back({tile, LinearCycles(work_, part, at_once, sm_count_)});
  }

  // As many as there is room for; of a block with a single tile no more than
  // it has chunks, and one. `of_part`: chunks of a block.
  int64_t StagesOf(const LinearTile& tile, int64_t of_part, int at_once) const {
    int64_t room = RoomFor(at_once);
    int64_t most = of_part == 1 ? 1 : of_part + 1;
    if (tile.keeps_weights) {
      room -= BytesOfKeptWeights(work_, tile) + BytesOfSums(tile) + kAlignment;
      most = kMostStages;
    }
    return std::min({room / (BytesOfLinearStage(tile) + kBytesOfBarriers),
                     kMostStages, most});
  }

  int64_t SharedBytesOf(const LinearTile& tile) const {
    const int64_t stages = tile.stages * BytesOfLinearStage(tile);
    const int64_t barriers = tile.stages * kBytesOfBarriers;
    const int64_t bytes =
        tile.keeps_weights ? BytesOfKeptWeights(work_, tile) + stages +
                                 BytesOfSums(tile) + barriers + kBytesOfBarriers
                           : std::max(stages, BytesOfSums(tile)) + barriers;
    return RoundUp(bytes, kAlignment);
  }

  const LinearWork work_;
  const int spare_registers_;
  const int64_t sm_count_;
  const int64_t most_shared_;
  std::vector<LinearWay> ways_;
};

// The largest power of two up to `most` that divides `count`.
int PowerIn(int64_t count, int64_t most) {
  while (count % most != 0) most /= 2;
  return static_cast<int>(most);
}

// A layer that reads `value` as its input, or null.
const Node* LayerOf(const LoweredPlan& plan, int value) {
  for (const Node& node : plan.nodes) {
    if (IsLinearLayer(plan, node) && ValueOf(node.operands[0]) == value) {
      return &node;
    }
  }
  return nullptr;
}

// Whether a layer reads its results, or what pointwise ops make of them.
bool FeedsLayer(const LoweredPlan& plan, const Node& conv) {
  const auto follows = [&](int value) {
    return std::find_if(
        plan.nodes.begin(), plan.nodes.end(), [&](const Node& node) {
          return node.kind == NodeKind::kPointwise && node.Reads(value);
        });
  };
  int value = conv.results[0];
  for (auto next = follows(value); LayerOf(plan, value) == nullptr;
       next = follows(value)) {
    if (next == plan.nodes.end()) return false;
    value = next->results[0];
  }
  return true;
}

LinearWork WorkOf(const LoweredPlan& plan, const Node& conv) {
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  return {input.dims[0], input.dims[1] * input.dims[2] * input.dims[3],
          plan.values[ValueOf(conv.operands[1])].desc.dims[0]};
}

// Whether lanes have done it when tensor cores have begun, though these could.
bool IsForLanes(const LinearWork& work, const Target& target) {
  const int64_t products = work.images * work.inputs * work.results;
  return products <= kMostProductsOfLanes * MultiprocessorsOf(target) &&
         work.inputs * work.results * work.bytes() <= kKeptBytes;
}

// Whether a layer makes its input, or what pointwise ops make it of.
bool IsFed(const LoweredPlan& plan, const Node& conv) {
  int producer = plan.values[ValueOf(conv.operands[0])].producer;
  while (producer >= 0 && plan.nodes[producer].kind == NodeKind::kPointwise) {
    const int value = ValueOf(plan.nodes[producer].operands[0]);
    producer = value >= 0 ? plan.values[value].producer : -1;
  }
  return producer >= 0 && IsLinearLayer(plan, plan.nodes[producer]);
}

// Whether what is gained is more than splitting takes. Of narrow layers behind
// each other, numbers in two parts, that is not so: three of 65536 images take
// 81 us, and turned once, before the first and behind the last
// (gather_pixels.h), 68.
bool IsWorthSplitting(const LoweredPlan& plan, const Node& conv,
                      const LinearWork& work) {
  const bool is_narrow = std::max(work.inputs, work.results) <= kNarrow;
  const bool is_many = work.images >= kManyImages;
  if (work.halves == 2 && is_narrow && is_many) {
    return !work.feeds && !IsFed(plan, conv);
  }
  return work.images >= kFewestSplitImages;
}

std::vector<LinearWay> WaysOfWarpgroups(const LoweredPlan& plan,
                                        const Node& conv, Grade grade,
                                        const Target& target,
                                        int spare_registers) {
  if (target.arch != "sm_90a") return {};
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const TensorDesc& filter = plan.values[ValueOf(conv.operands[1])].desc;
  LinearWork work = WorkOf(plan, conv);
  const bool is_split = input.dtype == DataType::kF32;
  if (is_split) {
    work.halves = grade == Grade::kTf32 ? 1 : 2;
    work.feeds = FeedsLayer(plan, conv);
  }
  const int copied = is_split ? kOctet : PowerIn(work.inputs, kOctet);
  if (input.dtype != filter.dtype ||
      (is_split && !IsWorthSplitting(plan, conv, work)) ||
      (copied == 1 && work.inputs > kMostOddInputs) ||
      std::max(work.inputs, work.images) > kMostOfAxis) {
    return {};
  }
  std::vector<LinearWay> ways = Search(work, target, spare_registers).Run();
  for (LinearWay& way : ways) {
    auto& part = std::get<LinearTile>(way.tile.part);
    part.copied = copied;
    part.streams = work.images <= part.images &&
                   work.results * work.inputs * work.bytes() > kKeptBytes;
    part.is_bfloat16 = input.dtype == DataType::kBF16;
    way.tile.vector = PowerIn(work.results, kAlignment / work.result_bytes());
  }
  return ways;
}

}  // namespace

std::vector<LinearWay> LinearWays(const LoweredPlan& plan, const Node& node,
                                  Grade grade, const Target& target,
                                  int spare_registers) {
  if (!IsLinearLayer(plan, node)) return {};
  std::vector<LinearWay> ways =
      WaysOfWarpgroups(plan, node, grade, target, spare_registers);
  const std::optional<DirectTile> dense = DenseTileOf(plan, node, target);
  if (dense) {
    const bool is_first =
        ways.empty() || IsForLanes(WorkOf(plan, node), target);
    ways.insert(is_first ? ways.begin() : ways.begin() + 1,
                {*dense, std::nullopt});
  }
  return ways;
}

bool HasAllResults(const LinearTile& tile, int64_t results) {
  return results <= tile.warpgroups * kLinearChannels;
}

std::vector<std::string> LinearConstants(const LinearTile& tile) {
  std::vector<std::string> lines = {
      fmt::format("static constexpr int kImages = {}, kStages = {};",
                  tile.images, tile.stages),
      fmt::format("static constexpr int kParts = {}, kCopied = {};", tile.parts,
                  tile.copied),
      fmt::format("static constexpr int kHalves = {};", tile.halves),
      fmt::format("static constexpr bool kStreams = {};", tile.streams)};
  const std::vector<std::string> products = ChunkProducts(
      {tile.images, kLinearChunk, tile.is_bfloat16, std::max(tile.halves, 1),
       tile.warpgroups * kLinearChannels});
  lines.insert(lines.end(), products.begin(), products.end());
  return lines;
}

}  // namespace kiln
