#include "jit/compile/conv_tiles.h"

#include <limits>

#include "jit/compile/compute_capability.h"
#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_search.h"
#include "jit/compile/conv_shared.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max() / 2;
constexpr int64_t kMaxStrip = 64;
constexpr int64_t kMaxStripOfStores = 16;
constexpr int64_t kMaxStripOfMany = 4;
constexpr int64_t kManyElements = 250'000'000;  // far more than the L2 holds
// What a tile must save to have weights packed for it alone, besides a launch:
// models say no more.
constexpr double kSlowedByPacking = 1.05;

// At most `most` tiles, so that strips share the height of an image equally.
int EvenStrip(ConvGeometry g, int64_t most) {
  g.tiles_per_block = 1;
  const int64_t tiles = g.strips();
  return static_cast<int>(CeilDiv(tiles, CeilDiv(tiles, most)));
}

}  // namespace

ConvTiles::ConvTiles(const ConvProblem& problem, const ConvDemands& demands,
                     const ConvOptions& options)
    : demands_(demands),
      options_(options),
      sm_count_(std::max(options.target.sm_count, 1)),
      most_shared_(MaxSharedBytes(options.target)) {
  base_.problem = problem;
  base_.windows = demands.windows;
  base_.spares_registers = options.spare_registers > 0;
  const bool is_fp32 = options.grade == Grade::kFp32;
  if (demands.leaves_lines) base_.result_parts = is_fp32 ? 2 : 1;
  base_.splits_input = is_fp32 && problem.input_type == DataType::kF32;
  base_.splits_weight = is_fp32 && problem.weight_type == DataType::kF32;
}

int64_t ConvTiles::StatisticsRegisters(const ConvGeometry& g) const {
  if (demands_.reduces_images) return int64_t{2} * g.tiles_n;
  const int64_t group = demands_.group_channels;
  return group == 0 ? 0 : g.tiles_n * (group % 2 == 0 ? 1 : 2) * 3;
}

bool ConvTiles::Offer(ConvGeometry g) {
  if (demands_.holds_images) return OfferHeld(g);
  if (!FindRoom(g)) return false;
  Compare(g);
  return true;
}

bool ConvTiles::FindRoom(const ConvGeometry& g) const {
  if (SharedBytes(g, demands_) <= most_shared_) return true;
  if (options_.search != nullptr) options_.search->LacksSharedMemory(g);
  return false;
}

// Of elements a block holds one tile, of windows those of a strip.
bool ConvTiles::OfferHeld(ConvGeometry g) {
  const bool has_windows = demands_.windows.any();
  bool fits = false;
  g.tiles_per_block = 0;
  for (int64_t most = 1; most <= (has_windows ? kMaxStrip : 1); most *= 2) {
    const int strip = EvenStrip(g, most);
    if (strip == g.tiles_per_block) break;
    g.tiles_per_block = strip;
    g.teams = static_cast<int>(
        std::min(sm_count_ / g.blocks_of_image(), g.problem.output[0]));
    if (!g.holds_images()) continue;
    if (has_windows && !SuitsHeldWindows(g)) continue;
    if (!FindRoom(g)) continue;
    CompareHeld(g);
    fits = true;
  }
  return fits;
}

// Four lanes read the states of a channel.
bool ConvTiles::SuitsHeldWindows(const ConvGeometry& g) const {
  constexpr int64_t kMostSplits = 32;
  return g.fewest_tiles() > ConvGeometry::kHeldLag &&
         g.Splits(demands_.group_channels) <= kMostSplits;
}

void ConvTiles::Refuse(const ConvGeometry& g) {
  if (options_.search != nullptr) options_.search->LacksRegisters(g);
}

// What a block costs before its first tile speaks for long strips. But
// neighbours across an image write parts of the same lines. Measured at 2 GB of
// results: in long strips these are written apart; with few results the L2
// still puts them together.
int64_t ConvTiles::LongestStrip(const ConvGeometry& g) const {
  const Dims4& output = g.problem.output;
  const int64_t elements = output[0] * output[1] * output[2] * output[3];
  if (!demands_.stores) return kMaxStrip;
  const bool has_neighbours = g.tiles_across() > 1;
  return has_neighbours && elements > kManyElements ? kMaxStripOfMany
                                                    : kMaxStripOfStores;
}

// By what tiles that hold images are compared, with each other alone: kernels
// apart have been fitted beside HeldCycles. With a stride more depends on who
// brings what. By hand, from 24 tiles of one plan.
double ConvTiles::HeldRank(const ConvGeometry& g) const {
  constexpr double kHeldSlowedByOneProducer = 1.1;
  constexpr double kHeldSlowedByLittleL1 = 1.12;
  const double cycles = HeldCycles(g, demands_);
  if (g.problem.stride[1] == 1) return cycles;
  return cycles * (g.producers == 1 ? kHeldSlowedByOneProducer : 1.0) *
         (LeavesLittleL1(g, demands_) ? kHeldSlowedByLittleL1 : 1.0);
}

void ConvTiles::CompareHeld(const ConvGeometry& g) { Take(g, HeldRank(g)); }

void ConvTiles::Compare(ConvGeometry g) {
  const auto cycles = [&] { return TileCycles(g, demands_, options_.target); };
  const int64_t longest = g.sum_blocks > 1 ? 1 : LongestStrip(g);
  // No strip's tiles cost less than those of the longest.
  g.tiles_per_block = static_cast<int>(longest);
  const double fewest_cycles = cycles();
  g.tiles_per_block = 1;
  const int64_t tiles = g.blocks();
  if (tiles > kMaxOffset || g.packed_bytes() > kMaxOffset) return;
  const double fewest = static_cast<double>(tiles) * fewest_cycles /
                        (sm_count_ * g.resident_blocks);
  const bool is_watched = options_.search != nullptr;
  if (best_.has_value() && fewest >= best_cycles_ && !is_watched) return;
  g.tiles_per_block = 0;
  for (int64_t most = 1; most <= longest; most *= 2) {
    const int strip = EvenStrip(g, most);
    if (strip == g.tiles_per_block) break;
    g.tiles_per_block = strip;
    const double of_tile = cycles();
    Take(g, ConvCycles(g, of_tile, sm_count_));
    if (g.strips() == 1) CompareRounds(g, of_tile);
    CompareWalks(g, of_tile);
  }
}

// Blocks that compute several images bring the next while they store one.
void ConvTiles::CompareRounds(ConvGeometry g, double tile_cycles) {
  const int64_t images = g.problem.output[0];
  if (!g.rounds_sums || g.sum_blocks > 1) return;
  for (int64_t rounds = 2; rounds <= images; rounds *= 2) {
    g.image_step = static_cast<int>(CeilDiv(images, rounds));
    Take(g, ConvCycles(g, tile_cycles, sm_count_));
  }
}

// The same of blocks that go through columns of tiles, as many as are resident.
// Of operands that are scaled only where columns have a tile each: elsewhere
// four plans of five took 1.07 to 1.24 times as long (H200).
void ConvTiles::CompareWalks(ConvGeometry g, double tile_cycles) {
  if (!g.problem.has_channel_phases() || g.turns_lines || g.sum_blocks > 1) {
    return;
  }
  if (!g.problem.takes_as_stored() && g.extent(0) > g.step(0)) return;
  const int64_t columns = g.problem.output[0] * g.tiles_across();
  const int64_t of_column = g.blocks_of_image() / g.tiles_across();
  const int64_t fitting = int64_t{sm_count_} * g.resident_blocks / of_column;
  if (fitting == 0 || fitting >= columns) return;
  g.walks_columns = true;
  g.image_step = static_cast<int>(CeilDiv(columns, CeilDiv(columns, fitting)));
  Take(g, ConvCycles(g, tile_cycles, sm_count_));
}

bool ConvTiles::IsRefused(const ConvGeometry& g) const {
  if (options_.refused == nullptr) return false;
  return std::any_of(
      options_.refused->begin(), options_.refused->end(),
      [&g](const ConvGeometry& refused) { return refused.IsTileOf(g); });
}

void ConvTiles::Take(const ConvGeometry& g, double cycles) {
  if (IsRefused(g)) return;
  if (demands_.packing.has_value() && g.packing() != *demands_.packing) {
    cycles = kSlowedByPacking * cycles + kCyclesOfLaunch;
  }
  if (options_.search != nullptr) options_.search->Fits(g, cycles);
  if (best_.has_value() && cycles >= best_cycles_) return;
  best_ = g;
  best_cycles_ = cycles;
}

}  // namespace kiln
