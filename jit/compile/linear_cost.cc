#include "jit/compile/linear_cost.h"

#include <algorithm>
#include <cmath>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kHalfBytes = 2;

// Fitted to twelve tiles each of 83 layers on an H200. Of a multiprocessor, in
// a cycle:
constexpr double kProducts = 1400;     // of tensor cores, as they wait
constexpr double kFewestColumns = 64;  // that they take as long for
// That arrive in shared memory, by copies of 16 bytes or by bulk copies.
constexpr double kBytesOfCopies = 60;
constexpr double kBytesOfBulk = 80;
constexpr double kBytesFromL2 = 30;  // of all blocks together
constexpr double kBytesOfMemory = 14;
constexpr double kBytesOfSplitting = 20;  // read and written
constexpr double kResults = 6;            // brought to their end: of 16 bits
constexpr double kWideResults = 4;        // of f32
// Cycles: until what is sent for is there; of a chunk, in which nothing is
// multiplied; of a block; of a cluster, that brings sums together, and of each
// time that it has twice as many blocks; and of one more kernel.
constexpr double kLatency = 1500;
constexpr double kCyclesOfWait = 100;
constexpr double kCyclesOfBlock = 1500;
constexpr double kCyclesOfCluster = 2000;
constexpr double kCyclesOfTwice = 500;
constexpr double kCyclesOfKernel = 4000;
// A cluster lies in one part of the device: of so many blocks, they find room
// on such a share of it.
constexpr int kFewInCluster = 4;
constexpr double kRoomForClusters = 6.0 / 7;
// Of what blocks do, what does not hide behind the memory.
constexpr double kPartApart = 0.1;

int64_t ChannelsOf(const LinearTile& tile) {
  return tile.warpgroups * kLinearChannels;
}

// What a multiprocessor has of the tiles of a layer.
struct Share {
  double tiles;     // in all
  double together;  // at once
  double begins;    // of blocks, one after the other

  // `at_once` of a multiprocessor.
  Share(const LinearWork& work, const LinearTile& tile, int64_t at_once,
        int64_t sm_count) {
    const double room = tile.parts < kFewInCluster ? 1.0 : kRoomForClusters;
    const auto all = static_cast<double>(LinearBlocks(work, tile));
    tiles = std::ceil(all / (room * static_cast<double>(sm_count)));
    together = std::min(tiles, static_cast<double>(at_once));
    begins = tile.keeps_weights ? 1 : std::ceil(tiles / together);
  }
};

double ChunksOf(const LinearWork& work, const LinearTile& tile) {
  return static_cast<double>(CeilDiv(work.chunks(), int64_t{tile.parts}));
}

double ArrivingOf(const LinearTile& tile) {
  return tile.halves > 0 ? kBytesOfBulk : kBytesOfCopies;
}

// Of a chunk of one of the blocks that are there together.
double CyclesOfChunk(const LinearTile& tile, double together) {
  // Of parts of numbers, for a product of two numbers.
  const int64_t times = tile.halves == 2 ? 3 : 1;
  const double products =
      static_cast<double>(ChannelsOf(tile) * kLinearChunk * times) *
      std::max<double>(tile.images, kFewestColumns) / kProducts;
  const auto bytes = static_cast<double>(BytesOfLinearStage(tile));
  return std::max({products, bytes / ArrivingOf(tile),
                   (products + kCyclesOfWait) / together,
                   kLatency / (together * std::max(tile.stages - 1, 1))});
}

// Of the memory and of the L2, for all blocks.
double CyclesToBring(const LinearWork& work, const LinearTile& tile,
                     double kept, int64_t sm_count) {
  const auto all = static_cast<double>(sm_count);
  const auto moved = static_cast<double>(
      work.bytes() * work.inputs * (work.images + work.results) +
      work.result_bytes() * work.images * work.results);
  const double brought = static_cast<double>(LinearBlocks(work, tile)) *
                             ChunksOf(work, tile) *
                             static_cast<double>(BytesOfLinearStage(tile)) +
                         kept * all;
  return std::max(
      moved / (kBytesOfMemory * all) + (tile.parts > 1 ? kCyclesOfCluster : 0),
      brought / (kBytesFromL2 * all));
}

// Of a kernel that splits the results.
double CyclesToSplit(const LinearWork& work, int64_t sm_count) {
  const auto bytes =
      static_cast<double>(work.images * work.results * (4 + work.bytes()));
  return kCyclesOfKernel +
         bytes / (kBytesOfSplitting * static_cast<double>(sm_count));
}

}  // namespace

int64_t LinearWork::chunks() const { return CeilDiv(inputs, kLinearChunk); }

int64_t LinearWork::bytes() const { return kHalfBytes * std::max(halves, 1); }

int64_t LinearWork::result_bytes() const { return halves > 0 ? 4 : kHalfBytes; }

int64_t BytesOfLinearStage(const LinearTile& tile) {
  const int64_t rows =
      tile.images + (tile.keeps_weights ? 0 : ChannelsOf(tile));
  return kHalfBytes * std::max(tile.halves, 1) * kLinearChunk * rows;
}

int64_t BytesOfKeptWeights(const LinearWork& work, const LinearTile& tile) {
  return work.chunks() * kLinearChunk * ChannelsOf(tile) * work.bytes();
}

int64_t LinearBlocks(const LinearWork& work, const LinearTile& tile) {
  return CeilDiv(work.images, int64_t{tile.images}) *
         CeilDiv(work.results, ChannelsOf(tile)) * tile.parts;
}

double LinearCycles(const LinearWork& work, const LinearTile& tile,
                    int64_t at_once, int64_t sm_count) {
  const Share share(work, tile, at_once, sm_count);
  const double kept =
      tile.keeps_weights
          ? static_cast<double>(BytesOfKeptWeights(work, tile)) * share.together
          : 0;
  const double finish =
      static_cast<double>(ChannelsOf(tile) * tile.images) /
      ((tile.halves > 0 ? kWideResults : kResults) * tile.parts);
  const double cluster =
      tile.parts > 1 ? kCyclesOfCluster + kCyclesOfTwice * std::log2(tile.parts)
                     : 0;
  const double cycles = share.tiles * (ChunksOf(work, tile) *
                                           CyclesOfChunk(tile, share.together) +
                                       finish) +
                        (kLatency + kCyclesOfBlock + cluster) * share.begins +
                        kept / ArrivingOf(tile);
  const double bring = kLatency + CyclesToBring(work, tile, kept, sm_count);
  const double all = std::max(cycles, bring) + kPartApart * cycles;
  const bool is_split = work.results <= ChannelsOf(tile);
  return work.feeds && !is_split ? all + CyclesToSplit(work, sm_count) : all;
}

}  // namespace kiln
