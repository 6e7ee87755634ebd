// Longer than 400 lines because one class weighs all parts of a tile's time.
// What tiles of warpgroups cost (conv_wgmma.cu).
#include "jit/compile/conv_group_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "jit/compile/conv_cost.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// In cycles and instructions of a multiprocessor, fitted to the times of 1,064
// tiles of 31 plans in both grades on an H100, if nothing else is said
// (docs/kernel-notes); those of sums, rounds and octets since to 1,281,
// some, which say so, to what 243 plans took whose tiles new ones replaced, and
// some to 1,658 tiles of 384 plans, small and large. Groups take turns, so that
// a tile takes as long as what is busiest, and a share of the rest.
//
// Where pixels are rows, an element, one of statistics (243 plans), and one
// that is stored from registers.
constexpr double kInstructionsPerElement = 6.95;
constexpr double kInstructionsPerMoment = 8.7;
constexpr double kInstructionsPerScattered = 32.1;
constexpr double kInstructionsPerStaged = 16.0;   // by hand
constexpr double kInstructionsPerChannel = 7.06;  // of a thread
constexpr double kShareOfOthers = 0.28;           // 384 plans
// Tensor cores take so many times what they should; so does a tile whose groups
// meet behind their sums, since each has some of a pixel's channels (384
// plans).
constexpr double kProducts = 1.28;
constexpr double kSlowedByMeeting = 1.18;
// All of this fits how tiles of a plan compare. So that predictions stay what
// other models (conv_held_cost.cc) are compared with, in the mean:
constexpr double kLevel = 0.8;
constexpr double kCyclesBetweenTurns = 56.0;  // of tensor cores; 243 plans
constexpr double kCyclesPerHandover = 306.0;  // of a stage
// How much longer reading takes where taps move pixels, in the mean of all
// taps. Fitted; two of three taps in a row, each read twice, would be 5/3.
// Also of pixels that are rows, swizzled ones, of operands as they are stored:
// from 40 tiles.
constexpr double kMisaligned = 1.5;
// The same of pixels that are rows of other products, where groups take turns:
// one of 64 columns reads all that shared memory gives, and takes an eighth
// longer by this, one of 88 or more as long as without; tiles of three plans
// took 10 to 25 % longer with 64 than with 128. Fewer columns than kWideProduct
// lost nothing by it where that was timed (243 plans).
constexpr double kMisalignedRows = 1.25;
constexpr double kWideProduct = 64.0;
// Of a product, where a tile has two phases and so fewer columns for each. By
// hand: with none, one plan of nine in `fp32` has a tile that takes 12 %
// longer.
constexpr double kCyclesBeforeProduct = 16.0;
constexpr double kInstructionsPerSum = 7.53;    // of statistics in registers
constexpr double kInstructionsOfPlanes = 10.0;  // 243 plans
// Of pooling, for each element from planes and from pixel rows, and for each
// window. What pixel rows wait for is kCyclesPerSlice. By hand, from 117 tiles
// of 11 plans.
constexpr double kInstructionsPerPooled = 10.0;
constexpr double kInstructionsPerPooledPixelRow = 8.0;
constexpr double kInstructionsPerWindow = 40.0;
// The same of windows in front of a norm, for each element where pixels are
// rows: by hand, from 17 tiles of six plans on an H200, which take 1.3 to 2
// times as long as without, where channels are rows nothing.
constexpr double kInstructionsPerPixelOfWindow = 40.0;
// The same of all of a tile where such windows overlap, of many groups, and
// columns come in pairs: by hand, from six tiles of three plans.
constexpr double kShareOfOverlapInMany = 0.87;
constexpr double kInstructionsOfStoring = 4.07;  // from planes
// Of so many ops those of lanes without pixels count, as constants for fewer do
// not have it. By hand, from 42 tiles.
constexpr int64_t kManyInstructionsOfOps = 36;
// The same from registers; how much longer a tile takes then that has neither
// both phases of its columns nor a stride; and storing f32 that no statistics
// are taken of. By hand, from 560 tiles of 62 plans, of which the chosen ones
// are 0.963 times as slow as the best of planes or pixel rows by this model.
constexpr double kInstructionsOfStoringSums = 2.0;
constexpr double kSlowedByStoringSums = 1.1;
constexpr double kStoredOfSums = 1.5;
// And storing where a tile has all phases, of f32 no longer than from planes.
// By hand, from 92 tiles of 46 plans on an H200.
constexpr double kStoredOfFourHalves = 1.25;
// The same where phases are channels, one by one, or two pixels of two phases
// in pairs, and all of such a tile. By hand, from 500 tiles of 57 plans on an
// H200, of which what is chosen is 3 % slower than the fastest.
constexpr double kStoredOfSinglePhases = 3.2;
constexpr double kStoredOfPartedPhases = 2.0;
constexpr double kShareOfChannelPhases = 0.87;
// A group's cycles for each instruction of f32's ops where channels are rows
// and nothing but stores follows: these wait for the ops of all groups. How
// much longer f32 takes to be stored whose rows do not begin with sectors: of
// pixels that are rows, by the part of a sector that they miss at most; and of
// channels, in rows of odd length. From the best tiles of both kinds of 156
// plans on an H200, of which what is chosen is 1.2 % slower than the faster;
// without these it was 2.7 %.
constexpr double kCyclesPerOpBeforeStores = 0.2;
constexpr double kStoredOfPixelsApart = 0.6;
constexpr double kStoredOfOddRows = 1.3;
// Of channels that are reduced from registers (conv_channel_runs.cuh): an
// element, the part of its ops' instructions that counts, a row of what is laid
// down, and what tiles take longer whose producers are two. By hand, from 60
// tiles of 15 plans.
constexpr double kInstructionsPerRun = 7.5;
constexpr double kShareOfOpsInRuns = 0.75;
constexpr double kInstructionsPerRow = 3.0;
constexpr double kRowsOfRun = 32.0;
constexpr double kRunsSlowedByTwoProducers = 1.05;
// A warp's cycles for each instruction of what follows the sums, more with each
// other warp beside it.
constexpr double kCyclesPerInstruction = 0.51;
constexpr double kCyclesPerNeighbour = 0.57;
constexpr double kIssuedByScheduler = 1.29;  // in a cycle; 384 plans
// Code for so many instructions in a row does not fit where it is fetched from.
constexpr double kInstructionsAtHand = 2000.0;
constexpr double kSlowedByFetching = 1.46;
constexpr double kStoredBytesPerCycle = 11.6;
// Of the L2, for each multiprocessor: input, weights that are not kept,
// results.
constexpr double kL2BytesPerCycle = 23.1;
constexpr double kSectorBytes = 32.0;
constexpr double kLoadedTogether = 64.0;  // bytes of memory
// Weights are the same for all, and come by bulk copies (243 plans).
constexpr double kShareOfWeights = 0.46;
// Of waiting for another tensor's elements, for a warp's.
constexpr double kCyclesPerPlaneRead = 25.2;
constexpr double kCyclesPerRead = 3.88;
// The same of what is read ahead; by hand, from 40 tiles.
constexpr double kCyclesPerReadAhead = 16.0;
// Of blocks that share a tile's sums: until all are there, those that come from
// each other block, and how much longer all takes than with chunks that are
// fewer for another reason. By hand, from 50 tiles of 40 plans.
constexpr double kCyclesOfSharing = 5000.0;
constexpr double kSharedBytesPerCycle = 32.0;
constexpr double kSlowedBySharing = 1.15;
// Of pooling from pixel rows, for each eight channels that all lay down; by
// hand, from four tiles.
constexpr double kCyclesPerSlice = 250.0;
constexpr double kInstructionsPerOctet = 33.8;  // loads included
constexpr double kInstructionsPerPart = 15.4;
// Of a producer: for the octets of a thread that are on their way at once, a
// round; the share of it that the first of them costs (by hand); and for each.
constexpr double kCyclesPerRound = 2610.0;
constexpr double kShareOfBegun = 0.4;
constexpr double kCyclesPerOctet = 80.7;
// The same of what is copied ahead (conv_copies.cuh), whose rounds wait for
// nothing; instructions for each octet beside those of its parts; until the
// first batch is there; and how much longer a tile takes that reads other
// tensors. By hand, from 98 pairs of tiles of 54 plans on an H200 that copy
// ahead and do not.
constexpr double kCyclesPerOctetAhead = 100.0;
constexpr double kCyclesPerPartAhead = 100.0;
constexpr double kInstructionsPerOctetAhead = 80.0;
constexpr double kCyclesBeforeCopies = 1500.0;
constexpr double kReadsSlowedByCopies = 1.06;
constexpr double kCyclesPerBlock = 5500.0;
// The same of operands that are multiplied as they are stored, and of results
// of 16 bits, which are stored no faster than those of 32; fitted to 554 tiles
// of 33 plans.
constexpr double kInstructionsPerRawOctet = 42.1;
constexpr double kCyclesPerRawRound = 948.0;
constexpr double kCyclesPerRawOctet = 394.0;
constexpr double kRawL2BytesPerCycle = 30.6;
constexpr double kRawShareOfOthers = 0.312;
constexpr double kRawIssuedByScheduler = 1.0;
constexpr double kSlowedByOneRawProducer = 1.037;
// Where a tile has both phases of its columns and channels are rows: by hand,
// from nine tiles of three plans on an H200, beside those of one phase and
// those whose rows are pixels.
constexpr double kRawBothPhases = 0.88;
// The same of long sums, and what weights are then; by hand, from 40 tiles of
// seven plans of 320 to 1280 channels.
constexpr double kRawShareOfOthersInLong = 0.15;
constexpr double kRawShareOfWeightsInLong = 0.45;
constexpr double kShortSum = 768.0;  // products of an element
constexpr double kInstructionsPerScatteredHalf = 53.4;
constexpr double kInstructionsOfHalfPlanes = 17.8;
constexpr double kCyclesPerRawReadAhead = 4.0;  // by hand, from 40 tiles
// Of units that are copied as they lie, whole or in halves, of which none waits
// for another, and of
// results that are rounded in registers (conv_rounded.cuh): an element, the
// part of its ops' instructions that counts, what is read beside it, in what is
// stored of it, how much longer storing takes than of f32, and all of a tile,
// of few groups or more. Fitted to 460 tiles of 75 plans, of which the chosen
// ones are 1.7 % slower than the best.
constexpr double kInstructionsPerCopy = 3.0;
constexpr double kCyclesPerCopy = 40.0;
constexpr double kCyclesPerCopiedChunk = 60.0;
constexpr double kShareOfWeightsBesideCopies = 1.6;
constexpr double kInstructionsPerRounded = 2.0;
constexpr double kShareOfOpsRounded = 0.35;
constexpr double kStoresPerRead = 2.0;
constexpr double kStoredRounded = 1.8;
constexpr double kFewGroupsRounded = 1.06;
constexpr double kManyGroupsRounded = 1.02;
constexpr int kManyGroups = 3;
// Of the octets of two pixels that are taken together, in those of one.
constexpr double kOctetsPerPair = 1.25;
// Of lines that are turned (conv_turned_lines.cuh), where they are: of a warp,
// for each eight matrices; of shared memory, which products read meanwhile, for
// each; how much more weights take of the L2, where nothing comes by way of the
// L1; and of finding where eights lie, where that changes, in eights. Fitted to
// 300 tiles of 38 plans in 16 bits, twice.
constexpr double kInstructionsPerEight = 150.0;
constexpr double kCyclesPerEight = 400.0;
constexpr double kCyclesPerMatrix = 2.5;
constexpr double kShareOfWeightsAlone = 1.3;
constexpr double kEightsToFind = 0.3;
// What a position that the tile above has costs of one that comes from memory.
// By hand: with a quarter or none, tiles of three plans are chosen that take 10
// to 25 % longer; with three quarters, those of four plans that take 4 to 9 %
// less are not.
constexpr double kShareOfCarried = 0.5;

// Of windows, for each element.
double PoolingInstructions(const ConvGeometry& g, const ConvDemands& demands) {
  if (!demands.windows.any()) return 0.0;
  if (!demands.pools_in_a_loop()) {
    return g.channel_rows ? 0.0 : kInstructionsPerPixelOfWindow;
  }
  return (g.channel_rows ? kInstructionsPerPooled
                         : kInstructionsPerPooledPixelRow) +
         kInstructionsPerWindow * demands.windows.density();
}

// What lanes of a warp that have no pixels of a plane (conv_planes.cuh) add to
// the ops of those that do, where these are many: of few the other constants
// have it.
double OpsOfIdleLanes(const ConvGeometry& g, const ConvDemands& demands) {
  if (demands.instructions < kManyInstructionsOfOps) return 0.0;
  const bool in_pairs = demands.stores && demands.reads == 0 &&
                        g.tile_w % 2 == 0 && g.problem.output[3] % 2 == 0;
  const int64_t at_once = in_pairs ? 64 : 32;
  const int64_t run = g.tiles_n * 8 * g.column_phases;
  const auto idle = static_cast<double>(RoundUp(run, at_once) - run);
  return idle / static_cast<double>(run) *
         static_cast<double>(demands.instructions - kFewInstructionsOfOps);
}

// Of what else follows the sums.
double TailInstructions(const ConvGeometry& g, const ConvDemands& demands) {
  const double ops = static_cast<double>(demands.instructions);
  const bool is_half = demands.stored_type != DataType::kF32;
  if (!g.channel_rows) {
    const double scattered =
        is_half ? kInstructionsPerScatteredHalf : kInstructionsPerScattered;
    const double stored =
        g.StagesResults(demands) ? kInstructionsPerStaged : scattered;
    const double gathered = demands.has_statistics ? kInstructionsPerMoment
                                                   : kInstructionsPerElement;
    const double each = demands.stores ? stored : gathered;
    return ops + each + kInstructionsPerChannel / (2 * g.tiles_m);
  }
  if (g.rounds_sums) return kInstructionsPerRounded + kShareOfOpsRounded * ops;
  if (g.stores_sums) {
    const double summed = demands.has_statistics ? kInstructionsPerSum : 0.0;
    return summed + ops + kInstructionsOfStoringSums;
  }
  if (!demands.in_registers()) {
    return (is_half ? kInstructionsOfHalfPlanes : kInstructionsOfPlanes) + ops +
           OpsOfIdleLanes(g, demands);
  }
  if (g.reduces_runs(demands)) {
    return kInstructionsPerRun + kShareOfOpsInRuns * ops;
  }
  return kInstructionsPerSum + ops +
         (demands.stores ? kInstructionsOfStoring : 0.0);
}

// How often a sector of the results is stored: once for each phase of its
// columns that is not in the tile.
double StoresOfSector(const ConvGeometry& g) {
  const int64_t phases = g.phases(1) / g.column_phases;
  return static_cast<double>(phases);
}

// Whether f32 is computed, and only stored.
bool OnlyStores(const ConvGeometry& g, const ConvDemands& demands) {
  return !g.brings_halves() && demands.stores && !demands.has_statistics &&
         demands.stored_type == DataType::kF32;
}

// How much longer storing takes of rows that do not begin with sectors.
double StoringApart(const ConvGeometry& g, const ConvDemands& demands) {
  if (!OnlyStores(g, demands) || g.problem.has_insert()) return 1.0;
  if (g.problem.has_channel_phases()) return 1.0;
  const int64_t together = std::gcd(g.problem.output[3], kPixelsOfSector);
  if (g.channel_rows) return together == 1 ? kStoredOfOddRows : 1.0;
  const double missed = static_cast<double>(kPixelsOfSector - together);
  return 1.0 + kStoredOfPixelsApart * missed / kPixelsOfSector;
}

// The part of a tile's channels that there are; where it has been seen to
// matter.
double ShareStored(const ConvGeometry& g) {
  if (!g.merges_rows) return 1.0;
  return static_cast<double>(g.problem.group_outputs()) /
         static_cast<double>(g.channel_blocks() * g.block_channels());
}

// Rows of a tile that lie one behind the other in memory; where it has been
// seen to matter.
int64_t RowsInARow(const ConvGeometry& g) {
  const bool is_as_wide = g.tile_w == g.problem.output[3];
  return is_as_wide && g.reads_beside ? g.tile_h : 1;
}

// The part of a tile's columns of taps that are multiplied: all in the phase
// that takes longest.
double ColumnsPresent(const ConvGeometry& g) {
  return g.merges_phases() ? g.present_taps(1) : 1.0;
}

// The part of a block's tiles that have others above them.
double ShareBelowOthers(const ConvGeometry& g) {
  const double tiles = g.tiles_per_block;
  return (tiles - 1) / tiles;
}

// Positions that a tile costs producers, in the mean of a block; those that the
// tile above has count in part.
double PositionsToPay(const ConvGeometry& g) {
  const auto carried = static_cast<double>(g.carried_positions());
  return static_cast<double>(g.brought()) -
         (1.0 - kShareOfCarried) * carried * ShareBelowOthers(g);
}

// Rows of a patch that a tile fetches, in the mean of a block.
double RowsToFetch(const ConvGeometry& g) {
  const auto carried = static_cast<double>(g.carried_rows());
  return static_cast<double>(g.planes(0)) *
         (static_cast<double>(g.plane_height()) -
          carried * ShareBelowOthers(g));
}

int64_t OctetsOfChunk(const ConvGeometry& g) { return g.chunk / 8; }

// The time of a tile in each block of a multiprocessor.
class GroupTileCost {
 public:
  GroupTileCost(const ConvGeometry& g, const ConvDemands& demands)
      : g_(g),
        demands_(demands),
        is_raw_(g.brings_halves()),
        groups_(g.groups() * g.resident_blocks),
        chunks_(static_cast<double>(g.chunks())),
        turn_(CyclesOfTurn(g)),
        elements_(static_cast<double>(g.run() * g.tile_phases() *
                                      g.block_channels()) /
                  g.groups() / 128),
        octets_(static_cast<double>(OctetsOfChunk(g)) * PositionsToPay(g) /
                128 * (g.takes_pairs ? kOctetsPerPair / 2 : 1.0)),
        eights_(EightsOfWarp()) {
    const double sums =
        g.sums_chunks() ? elements_ * chunks_ * static_cast<double>(g.chains())
                        : 0.0;
    in_a_row_ = elements_ * TailInstructions(g, demands) + sums;
    if (g.reduces_runs(demands)) in_a_row_ += kInstructionsPerRow * kRowsOfRun;
    after_ = in_a_row_ + elements_ * PoolingInstructions(g, demands);
    if (demands.stores) {
      const auto size = static_cast<double>(ElementSize(demands.stored_type));
      const double of_row =
          static_cast<double>(g.tile_w * g.column_phases * RowsInARow(g)) *
          size;
      bytes_ = elements_ * ShareStored(g) * 128 * groups_ * size *
               (StoresOfSector(g) * StoringApart(g, demands) +
                kSectorBytes / of_row);
    }
  }

  double Cycles() const {
    const auto parts = {Own(),      Bring(),  Issue(),
                        Products(), Stored(), ThroughL2()};
    const double most = std::max(parts);
    const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
    return Slowed() * (most + ShareOfOthers() * (all - most)) + Meetings() +
           Sharing() + OpsBeforeStores();
  }

 private:
  // Of one warpgroup.
  double Own() const {
    const double ahead = is_raw_ ? kCyclesPerRawReadAhead : kCyclesPerReadAhead;
    const double of_read = !g_.channel_rows  ? kCyclesPerRead
                           : g_.rounds_sums  ? 0.0
                           : g_.reads_beside ? ahead
                                             : kCyclesPerPlaneRead;
    const double reads = static_cast<double>(demands_.reads) * of_read;
    const double fetching =
        in_a_row_ > kInstructionsAtHand ? kSlowedByFetching : 1.0;
    const double slowed =
        (kCyclesPerInstruction + kCyclesPerNeighbour * groups_) * fetching;
    return chunks_ * (turn_ + kCyclesPerHandover) + after_ * slowed +
           elements_ * 4 * groups_ * reads;
  }
  // Of a producer.
  double Bring() const {
    if (g_.takes_lines) {
      return chunks_ * (kCyclesPerCopiedChunk + kCyclesPerCopy * octets_);
    }
    if (g_.turns_lines) return kCyclesPerEight * eights_;
    if (g_.batches_ahead > 0) {
      return chunks_ * octets_ *
             (kCyclesPerOctetAhead + kCyclesPerPartAhead * g_.input_parts()) /
             g_.producers;
    }
    const int sharing = g_.producers / g_.chunk_producers();
    const double rounds = Rounds(octets_ / sharing / g_.octets_at_once());
    const double of_round = is_raw_ ? kCyclesPerRawRound : kCyclesPerRound;
    const double of_octet = is_raw_ ? kCyclesPerRawOctet : kCyclesPerOctet;
    return chunks_ * (of_round * rounds + of_octet * octets_ / sharing) /
           g_.chunk_producers();
  }
  // Eights of matrices that a warp turns for a tile, finding them included.
  double EightsOfWarp() const {
    if (!g_.turns_lines) return 0.0;
    const TurningShare share = g_.turning();
    const auto turns =
        static_cast<double>(CeilDiv(OctetsOfChunk(g_), share.sets));
    const double finding = share.batches > 1 ? kEightsToFind : 0.0;
    return chunks_ * static_cast<double>(share.batches * share.at_once) *
           (turns + finding);
  }
  // What takes so many rounds, the last in part.
  double Rounds(double needed) const {
    const double begun = std::ceil(needed);
    if (is_raw_) return begun;
    return kShareOfBegun * begun + (1.0 - kShareOfBegun) * needed;
  }
  double Issue() const {
    const double copied = g_.batches_ahead > 0 ? kInstructionsPerOctetAhead
                                               : kInstructionsPerOctet;
    const double scaled = copied + kInstructionsPerPart * g_.input_parts();
    const double of_octet = g_.takes_lines ? kInstructionsPerCopy
                            : is_raw_      ? kInstructionsPerRawOctet
                                           : scaled;
    const double brought = g_.turns_lines
                               ? g_.producers * kInstructionsPerEight * eights_
                               : chunks_ * octets_ * of_octet;
    return (groups_ * after_ + g_.resident_blocks * brought) /
           (is_raw_ ? kRawIssuedByScheduler : kIssuedByScheduler);
  }
  double Products() const {
    const double all = groups_ * chunks_ * (turn_ + kCyclesBetweenTurns);
    const double turned =
        kCyclesPerMatrix * 8 * 4 * g_.producers * g_.resident_blocks * eights_;
    return is_raw_ ? all + turned : kProducts * all;
  }
  double Stored() const {
    if (g_.problem.has_channel_phases()) return StoredOfPhases();
    const bool is_half = demands_.stored_type != DataType::kF32;
    const double of_half = g_.merges_rows   ? kStoredOfFourHalves
                           : g_.rounds_sums ? kStoredRounded
                                            : 2.0;
    const bool is_alone =
        g_.stores_sums && !demands_.has_statistics && !g_.merges_rows;
    const double of_whole = is_alone ? kStoredOfSums : 1.0;
    return (is_half ? of_half : of_whole) * bytes_ / kStoredBytesPerCycle;
  }
  double StoredOfPhases() const {
    const bool is_half = demands_.stored_type != DataType::kF32;
    const double together = is_half ? kStoredOfFourHalves : 1.0;
    const double each = !g_.stores_phase_pairs() ? kStoredOfSinglePhases
                        : g_.parts_phase_fours() ? kStoredOfPartedPhases
                                                 : together;
    return each * bytes_ / kStoredBytesPerCycle;
  }
  double OpsBeforeStores() const {
    if (!g_.channel_rows || !OnlyStores(g_, demands_)) return 0.0;
    return kCyclesPerOpBeforeStores * elements_ * groups_ *
           static_cast<double>(demands_.instructions);
  }
  // In which blocks of a cluster bring their sums together.
  double Sharing() const {
    if (g_.sum_blocks == 1) return 0.0;
    const auto bytes = static_cast<double>(g_.sum_bytes());
    return kCyclesOfSharing +
           (g_.sum_blocks - 1) * bytes / kSharedBytesPerCycle;
  }
  // In which threads of all groups wait for each other.
  double Meetings() const {
    if (!demands_.pools_in_a_loop() || g_.channel_rows) return 0.0;
    return kCyclesPerSlice * g_.tiles_n;
  }
  double ThroughL2() const {
    const auto size =
        static_cast<double>(g_.lays_lines ? 2 * g_.input_parts()
                                          : ElementSize(g_.problem.input_type));
    const double rows = RowsToFetch(g_);
    const auto columns = static_cast<double>(g_.pitch * g_.planes(1));
    const bool is_aligned = g_.halo(1) == 0 && g_.pitch % 16 == 0;
    const double of_row = columns * size + (is_aligned ? 0.0 : kLoadedTogether);
    const double input = g_.images * chunks_ * g_.chunk * rows * of_row;
    const double weights =
        g_.keeps_weights ? 0.0 : ShareOfWeights() * WeightBytes(g_);
    const double rate = is_raw_ ? kRawL2BytesPerCycle : kL2BytesPerCycle;
    const double beside =
        g_.rounds_sums ? kStoresPerRead * static_cast<double>(demands_.reads)
                       : 0.0;
    return ((input + weights) * g_.resident_blocks + bytes_ * (1.0 + beside)) /
           rate;
  }
  double ShareOfWeights() const {
    if (!is_raw_) return kShareOfWeights;
    const double alone = g_.turns_lines   ? kShareOfWeightsAlone
                         : g_.takes_lines ? kShareOfWeightsBesideCopies
                                          : 1.0;
    return alone * InLong(g_, kShareOfWeights, kRawShareOfWeightsInLong);
  }
  double ShareOfOthers() const {
    if (!is_raw_) return kShareOfOthers;
    return InLong(g_, kRawShareOfOthers, kRawShareOfOthersInLong);
  }
  double Slowed() const {
    const bool is_plain = !g_.merges_phases() && !g_.problem.has_stride();
    const double storing =
        g_.stores_sums && is_plain ? kSlowedByStoringSums : 1.0;
    const bool are_late = g_.reduces_runs(demands_) && g_.producers > 1;
    const double bringing = are_late ? kRunsSlowedByTwoProducers : 1.0;
    const double sharing = g_.sum_blocks > 1 ? kSlowedBySharing : 1.0;
    const bool is_beside = g_.batches_ahead > 0 && demands_.reads > 0;
    const double reading = is_beside ? kReadsSlowedByCopies : 1.0;
    const bool overlaps = g_.pairs_columns && demands_.has_statistics &&
                          !g_.channel_rows && demands_.windows.lay_out_tiles();
    const double pooling =
        overlaps && groups_ > kManyGroups ? kShareOfOverlapInMany : 1.0;
    const double phases =
        g_.problem.has_channel_phases() ? kShareOfChannelPhases : 1.0;
    return storing * bringing * sharing * reading * pooling * phases *
           (is_raw_ ? RawSlowed() : ScaledSlowed());
  }
  double ScaledSlowed() const {
    const bool meet =
        demands_.all_channels_in_a_block && !g_.channel_rows && g_.groups_n > 1;
    return kLevel * (meet ? kSlowedByMeeting : 1.0);
  }
  double RawSlowed() const {
    const bool is_late = g_.resident_blocks == 1 && g_.producers == 1 &&
                         !g_.takes_lines && !g_.turns_lines;
    const double of_groups =
        groups_ < kManyGroups ? kFewGroupsRounded : kManyGroupsRounded;
    const bool has_both = g_.column_phases == 2 && g_.channel_rows;
    return (is_late ? kSlowedByOneRawProducer : 1.0) *
           (has_both ? kRawBothPhases : 1.0) *
           (g_.rounds_sums ? of_groups : 1.0);
  }

  const ConvGeometry& g_;
  const ConvDemands& demands_;
  const bool is_raw_;
  const int groups_;  // of the multiprocessor
  const double chunks_;
  const double turn_;
  const double elements_;  // of a thread
  // Of a chunk, for each thread of one warpgroup, by PositionsToPay.
  const double octets_;
  const double eights_;
  double in_a_row_;     // instructions behind the products, but for a loop
  double after_;        // those of the loop over windows, too
  double bytes_ = 0.0;  // of results
};

// How much longer reading takes where taps move pixels.
double ReadingOfMoved(const ConvGeometry& g) {
  const bool are_raw_rows = g.brings_halves() && !g.channel_rows;
  if (g.octets_of_row() == 1 || are_raw_rows) return kMisaligned;
  const bool take_turns = g.groups() * g.resident_blocks > 1;
  const bool are_wide = g.tiles_n * 8 >= kWideProduct;
  return !g.channel_rows && take_turns && are_wide ? kMisalignedRows : 1.0;
}

}  // namespace

double GroupTileCycles(const ConvGeometry& g, const ConvDemands& demands) {
  return GroupTileCost(g, demands).Cycles();
}

double GroupBlockCycles(const ConvGeometry& g) {
  const double copies = g.batches_ahead > 0 ? kCyclesBeforeCopies : 0.0;
  const double weights =
      g.keeps_weights ? WeightBytes(g) / kL2BytesPerCycle : 0.0;
  return kCyclesPerBlock + copies + weights;
}

double InLong(const ConvGeometry& g, double in_short, double in_long) {
  const auto sum =
      static_cast<double>(g.problem.group_inputs() * g.problem.taps());
  const double length = std::max(1.0, sum / kShortSum);
  return in_long + (in_short - in_long) / (length * length);
}

double CyclesOfTurn(const ConvGeometry& g) {
  const double columns = g.tiles_n * 8;
  const double before = g.merges_phases() ? kCyclesBeforeProduct : 0.0;
  const double pixels = g.taps(1) > 1 ? ReadingOfMoved(g) : 1.0;
  const double reading =
      g.channel_rows ? 16 + columns / 4 * pixels : 16 * pixels + columns / 4;
  return static_cast<double>(g.steps()) * g.products() * g.tiles_m *
         ColumnsPresent(g) * std::max(columns / 2 + before, reading);
}

double WeightBytes(const ConvGeometry& g) {
  return static_cast<double>(g.chunks() * g.tile_phases() * g.weight_units() *
                             16) *
         g.present_taps(0) * g.present_taps(1);
}

}  // namespace kiln
