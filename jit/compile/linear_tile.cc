#include "jit/compile/linear_tile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/compute_capability.h"
#include "jit/compile/dense_tile.h"
#include "jit/compile/direct_cost.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"
#include "jit/compile/warpgroup_text.h"

namespace kiln {
namespace {

constexpr int64_t kBytes = 2;  // of a number
constexpr int64_t kOctet = 8;
constexpr int64_t kAlignment = 16;
constexpr int64_t kChunk = 64;
constexpr int64_t kChannels = 64;  // of a warpgroup
constexpr int64_t kThreads = 128;
constexpr int64_t kProducers = 64;        // threads that bring chunks
constexpr int64_t kBytesOfBarriers = 16;  // of a stage
constexpr int64_t kMostStages = 8;
// Of a block, where two share a multiprocessor.
constexpr int64_t kHalfOfShared = 113 * 1024;
constexpr int64_t kImagesOfHalf = 128;  // more sums need more registers
// Of weights, that may stay in an L2 of 50 MB until they are read again.
constexpr int64_t kKeptBytes = 32 << 20;
// Of a multiprocessor, that are left to lanes.
constexpr int64_t kMostProductsOfLanes = int64_t{1} << 17;
// Of a row that no copies fit, and threads load.
constexpr int64_t kMostOddInputs = 512;
constexpr int64_t kMostOfAxis = int64_t{1}
                                << 30;  // which are counted in 32 bits
constexpr int64_t kMostBlocks = int64_t{1} << 30;

// Fitted to 16 tiles each of 27 layers on an H200. Of a multiprocessor, in a
// cycle:
constexpr double kProducts = 1400;     // of tensor cores, as they wait
constexpr double kFewestColumns = 64;  // that they take as long for
constexpr double kBytesOfBlocks = 50;  // that arrive in shared memory
constexpr double kBytesFromL2 = 30;    // of all blocks together
constexpr double kBytesOfMemory = 14;
constexpr double kResults = 4;  // brought to their end
// Cycles: until what is sent for is there; of a chunk, in which nothing is
// multiplied; of a block; and of a cluster, that brings sums together, and of
// each time that it has twice as many blocks.
constexpr double kLatency = 1000;
constexpr double kCyclesOfWait = 100;
constexpr double kCyclesOfBlock = 500;
constexpr double kCyclesOfCluster = 2000;
constexpr double kCyclesOfTwice = 1000;
// A cluster lies in one part of the device: of so many blocks, they find room
// on such a share of it.
constexpr int kFewInCluster = 4;
constexpr double kRoomForClusters = 6.0 / 7;
// Of what blocks do, what does not hide behind the memory.
constexpr double kPartApart = 0.2;

struct LinearWork {
  int64_t images;
  int64_t inputs;
  int64_t results;
};

int64_t BytesOfStage(const LinearTile& tile) {
  return kBytes * kChunk * (tile.warpgroups * kChannels + tile.images);
}

int64_t BytesOfSums(const LinearTile& tile) {
  return 4 * int64_t{tile.images} * (tile.warpgroups * kChannels + 4);
}

int64_t TilesOf(const LinearWork& work, const LinearTile& tile) {
  return CeilDiv(work.images, int64_t{tile.images}) *
         CeilDiv(work.results, tile.warpgroups * kChannels);
}

// What a multiprocessor has of the tiles of a layer.
struct Share {
  double blocks;    // in all
  double together;  // at once
  double chunks;    // of a block

  // `at_once` of a multiprocessor.
  Share(const LinearWork& work, const LinearTile& tile, int64_t at_once,
        int64_t sm_count)
      : chunks(static_cast<double>(
            CeilDiv(CeilDiv(work.inputs, kChunk), int64_t{tile.parts}))) {
    const double room = tile.parts < kFewInCluster ? 1.0 : kRoomForClusters;
    const auto all = static_cast<double>(TilesOf(work, tile) * tile.parts);
    blocks = std::ceil(all / (room * static_cast<double>(sm_count)));
    together = std::min(blocks, static_cast<double>(at_once));
  }
};

// Of a chunk of one of the blocks that are there together.
double CyclesOfChunk(const LinearTile& tile, double together) {
  const auto bytes = static_cast<double>(BytesOfStage(tile));
  const double products =
      static_cast<double>(tile.warpgroups * kChannels * kChunk) *
      std::max<double>(tile.images, kFewestColumns) / kProducts;
  return std::max(
      {products, bytes / kBytesOfBlocks, (products + kCyclesOfWait) / together,
       kLatency / (together * static_cast<double>(tile.stages - 1))});
}

// Of the memory and of the L2, for all blocks.
double CyclesToBring(const LinearWork& work, const LinearTile& tile,
                     double chunks, int64_t sm_count) {
  const auto all = static_cast<double>(sm_count);
  const auto moved =
      static_cast<double>(kBytes * (work.inputs * (work.images + work.results) +
                                    work.images * work.results));
  const auto blocks = static_cast<double>(TilesOf(work, tile) * tile.parts);
  const double brought =
      blocks * chunks * static_cast<double>(BytesOfStage(tile));
  return std::max(
      moved / (kBytesOfMemory * all) + (tile.parts > 1 ? kCyclesOfCluster : 0),
      brought / (kBytesFromL2 * all));
}

// Until the last block has ended; `at_once` of a multiprocessor.
double CyclesOf(const LinearWork& work, const LinearTile& tile, int64_t at_once,
                int64_t sm_count) {
  const Share share(work, tile, at_once, sm_count);
  const double finish =
      static_cast<double>(tile.warpgroups * kChannels * tile.images) /
      (kResults * tile.parts);
  const double cluster =
      tile.parts > 1 ? kCyclesOfCluster + kCyclesOfTwice * std::log2(tile.parts)
                     : 0;
  const double cycles =
      share.blocks *
          (share.chunks * CyclesOfChunk(tile, share.together) + finish) +
      (kLatency + kCyclesOfBlock + cluster) *
          std::ceil(share.blocks / share.together);
  const double bring = CyclesToBring(work, tile, share.chunks, sm_count);
  return std::max(cycles, kLatency + bring) + kPartApart * cycles;
}

// All tiles, the fastest first.
class Search {
 public:
  Search(const LinearWork& work, const Target& target)
      : work_(work),
        sm_count_(MultiprocessorsOf(target)),
        most_shared_(MaxSharedBytes(target)) {}

  std::vector<LinearWay> Run() && {
    for (const int images : {8, 16, 32, 64, 96, 128, 192, 256}) {
      for (const int warpgroups : {1, 2}) {
        for (const int parts : {1, 2, 4, 8}) {
          for (const int at_once : {1, 2}) {
            Try({warpgroups, images, 0, parts}, at_once);
          }
        }
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
  // `at_once`: blocks of a multiprocessor.
  void Try(LinearTile part, int at_once) {
    const int64_t chunks = CeilDiv(work_.inputs, kChunk);
    const int64_t of_part = CeilDiv(chunks, int64_t{part.parts});
    if ((part.parts - 1) * of_part >= chunks) return;
    const bool is_wide = part.images > kImagesOfHalf;
    if (is_wide && at_once > 1) return;
    const int64_t stage = BytesOfStage(part);
    const int64_t room =
        at_once > 1 ? std::min(most_shared_, kHalfOfShared) : most_shared_;
    part.stages = static_cast<int>(std::min(
        {room / (stage + kBytesOfBarriers), kMostStages, of_part + 1}));
    part.stages = std::max(part.stages, 2);
    const int64_t shared =
        RoundUp(std::max(part.stages * stage, BytesOfSums(part)) +
                    part.stages * kBytesOfBarriers,
                kAlignment);
    const int64_t blocks = TilesOf(work_, part) * part.parts;
    if (shared > room || blocks > kMostBlocks) return;
    // Blocks alone have more stages, or they are no others.
    if (at_once == 1 && shared <= kHalfOfShared && !is_wide) return;
    DirectTile tile;
    tile.threads = static_cast<int>(part.warpgroups * kThreads + kProducers);
    tile.blocks = blocks;
    tile.min_blocks = at_once;
    tile.shared_bytes = shared;
    tile.part = part;
    ways_.push_back({tile, CyclesOf(work_, part, at_once, sm_count_)});
  }

  const LinearWork work_;
  const int64_t sm_count_;
  const int64_t most_shared_;
  std::vector<LinearWay> ways_;
};

// The largest power of two up to `most` that divides `count`.
int PowerIn(int64_t count, int64_t most) {
  while (count % most != 0) most /= 2;
  return static_cast<int>(most);
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
         work.inputs * work.results * kBytes <= kKeptBytes;
}

std::vector<LinearWay> WaysOfWarpgroups(const LoweredPlan& plan,
                                        const Node& conv,
                                        const Target& target) {
  if (target.arch != "sm_90a") return {};
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const TensorDesc& filter = plan.values[ValueOf(conv.operands[1])].desc;
  const LinearWork work = WorkOf(plan, conv);
  const int copied = PowerIn(work.inputs, kOctet);
  if (input.dtype != filter.dtype || ElementSize(input.dtype) != kBytes ||
      (copied == 1 && work.inputs > kMostOddInputs) ||
      std::max(work.inputs, work.images) > kMostOfAxis) {
    return {};
  }
  std::vector<LinearWay> ways = Search(work, target).Run();
  for (LinearWay& way : ways) {
    auto& part = std::get<LinearTile>(way.tile.part);
    part.copied = copied;
    part.streams = work.images <= part.images &&
                   work.results * work.inputs * kBytes > kKeptBytes;
    part.is_bfloat16 = input.dtype == DataType::kBF16;
    way.tile.vector = PowerIn(work.results, kOctet);
  }
  return ways;
}

}  // namespace

std::vector<LinearWay> LinearWays(const LoweredPlan& plan, const Node& node,
                                  const Target& target) {
  if (!IsLinearLayer(plan, node)) return {};
  std::vector<LinearWay> ways = WaysOfWarpgroups(plan, node, target);
  const std::optional<DirectTile> dense = DenseTileOf(plan, node, target);
  if (dense) {
    const bool is_first =
        ways.empty() || IsForLanes(WorkOf(plan, node), target);
    ways.insert(is_first ? ways.begin() : ways.begin() + 1,
                {*dense, std::nullopt});
  }
  return ways;
}

std::vector<std::string> LinearConstants(const LinearTile& tile) {
  std::vector<std::string> lines = {
      fmt::format("static constexpr int kImages = {}, kStages = {};",
                  tile.images, tile.stages),
      fmt::format("static constexpr int kParts = {}, kCopied = {};", tile.parts,
                  tile.copied),
      fmt::format("static constexpr bool kStreams = {};", tile.streams)};
  const std::vector<std::string> products =
      ChunkProducts({tile.images, kChunk, tile.is_bfloat16});
  lines.insert(lines.end(), products.begin(), products.end());
  return lines;
}

}  // namespace kiln
