// Longer than 400 lines because one class weighs all keepers of rows alike.
#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "jit/compile/compute_capability.h"
#include "jit/compile/rounding.h"
#include "jit/compile/row_cost.h"
#include "jit/compile/row_geometry.h"

namespace kiln {
namespace {

constexpr int64_t kKiB = 1024;
// What a block may have without asking for more.
constexpr int64_t kStaticShared = 46 * kKiB;
constexpr int kAccessBytes = 16;
constexpr int kMaxCluster = 8;   // what every device with clusters offers
constexpr int kFewSplits = 32;   // whose states a warp merges
constexpr int kMaxSplits = 256;  // the same, a block
constexpr int kWarp = 32;
constexpr int kMinBlockLanes = 128;
constexpr int kMaxLanes = 512;
// On a multiprocessor at once, with the registers that row_spec.cc allows.
constexpr int kThreadsPerSm = 1024;
// Elements of a row that a thread of a block keeps, where there are threads
// enough, and how few are worth a thread.
constexpr int64_t kMaxKept = 16;
constexpr int64_t kMinKept = 8;
// The same in registers, where code is repeated for each: half for more than
// a few operations.
constexpr int64_t kMaxHeld = 32;
constexpr int kFewOperations = 2;
constexpr int kWarpRowThreads = 128;
// The same of rows side by side: elements of a row that a thread has, and bytes
// of a vector of rows, more where few threads have to meet; threads of a block,
// and of a multiprocessor, at least; and places of strips for each that is not
// empty.
constexpr int64_t kMaxColumnSteps = 16;
constexpr int64_t kMinColumnSteps = 4;
constexpr int64_t kMaxColumnBytes = 128;
constexpr int64_t kFewColumnLanes = 4;
constexpr int64_t kMaxColumnBytesOfFew = 192;
constexpr int64_t kMinColumnThreads = 64;
constexpr int64_t kMinColumnThreadsPerSm = 128;
constexpr double kMostEmpty = 1.15;
// Of what is held in registers: rows of a thread at least, if vectors are of so
// many; threads next to each other, and fewer where else a block would have too
// many; and threads of a block at least, fewer of narrow images if there are
// many blocks.
constexpr int kHeldColumns = 2;
constexpr int kMaxHeldAcross = 16;
constexpr int kMinHeldAcross = 8;
constexpr int kMinHeldThreads = 128;
constexpr int kMinHeldThreadsOfMany = 64;
// Threads above each other whose values each of them reads, one by one; more of
// a single row each, beside kMinHeldAcross others.
constexpr int kMaxMet = 16;
constexpr int kMaxMetOfOne = 64;
// Of a row, for each thread that shares it.
constexpr int64_t kColumnStateBytes = 8;
constexpr int64_t kChainStateBytes = 12;
// Elements of a thread that takes a row through several reductions: more than
// in registers where several warps would have to meet after each. And threads
// of a multiprocessor that are worth more lanes.
constexpr int64_t kMaxChainKept = 64;
// Numbers that a thread holds in registers between reductions, beside what it
// computes with. And operations that are written out for a thread's elements:
// more would take long to compile. More, and more than kMaxHeld elements, of
// columns where they have 16 bits or are loaded one by one.
constexpr int64_t kMaxHeldWords = 48;
constexpr int64_t kMaxWrittenOut = 384;
constexpr int64_t kMaxWrittenOutOfColumns = 480;
constexpr int kMaxChainColumns = 4;
// Of a thread that keeps nothing: what hides the latency of memory, and values
// of all reductions that it has registers for.
constexpr int kPassBytesInFlight = 64;
constexpr int kPassValuesInFlight = 48;
constexpr int kWordBytes = 4;
constexpr int kChainThreads = 256;
constexpr int kLineBytes = 128;
constexpr int kSectorBytes = 32;
// Lanes that read a line with one access each. Rows that would leave them with
// less than so many elements have fewer: a warp issues some 250 instructions,
// however few elements it has. Where several elements are one access, and there
// is one reduction, bytes count.
constexpr uint64_t kLineLanes = 8;
constexpr int64_t kFewestOfLane = 6;
constexpr int64_t kFewestBytesOfLane = 24;
// Smaller slices are not worth an exchange between blocks.
constexpr int64_t kMinClusterSlice = 2048;
// That kernels count.
constexpr int64_t kMaxSlice = int64_t{1} << 30;
// From this on, rows of which two or three fit on a multiprocessor: 4 to 8 %
// faster in turns, where four or more gain nothing (docs/kernel-notes).
constexpr int64_t kLargeRowBytes = 64 * kKiB;
// Most bytes of a chunk, so that many are in flight; and what is enough for the
// copy engine, where the ring holds few rows.
constexpr int64_t kMaxChunkBytes = 16 * kKiB;
constexpr int64_t kChunkBytes = 8 * kKiB;
constexpr int64_t kFewRows = 4;
// A block's elements of a row, of which its warps are done before they have
// waited for what they need.
constexpr int64_t kShortSlice = 4096;
// Warps of row_team.cu that compute results; where these are no more than the
// norm or softmax and the ring holds few rows, or threads of as many would have
// too few registers. And what those may have of an element's tensors and
// operations: to take a vector at a time, and two.
constexpr int kFinishers = 16;
constexpr int kFewFinishers = 8;
constexpr int kMaxFinishedValues = 24;
constexpr int kFewFinishedValues = 16;
constexpr int kFewFinishedOperations = 3;
// Chunk positions are multiples of this many elements, a line of memory of any
// type: 10 % of group_norm in f16, 1 % of P1.
constexpr int64_t kChunkElements = 64;

// Smaller teams are no faster than clusters.
constexpr int kSmallestTeam = 8;
constexpr size_t kTeamsWeighed = 3;

class Choice {
 public:
  Choice(const RowWork& work, const Target& target,
         std::vector<RowCandidate>* seen)
      : work_(work),
        seen_(seen),
        arch_(ComputeCapability(target)),
        max_shared_bytes_(MaxSharedBytes(target)),
        sm_count_(std::max(target.sm_count, 1)),
        cost_(work, sm_count_) {
    const int64_t run = work.run > 0     ? work.run
                        : work.pitch > 1 ? work.pitch
                                         : work.length;
    vector_ = kAccessBytes / WidestBytes();
    // A thread has the numbers of each row of a vector.
    if (work.reductions > 1 && work.pitch > 1) {
      vector_ = std::min(vector_, kMaxChainColumns);
    }
    while (run % vector_ != 0) vector_ /= 2;
    // Segments are read where a row lies in its places in order.
    if (work.segment > 0) {
      vector_ = std::min(vector_, kAccessBytes / work.kept_bytes);
    }
  }

  std::optional<RowGeometry> Run() && {
    best_cost_ = cost_.PlainUs();
    if (seen_ != nullptr) seen_->push_back({std::nullopt, best_cost_, ""});
    const bool is_chain_of_one = work_.pitch > 1 && work_.has_pure_numbers;
    if (work_.reductions > 1 || is_chain_of_one) TryWarpChain();
    if (work_.pitch > 1) {
      TryColumns();
      return best_;
    }
    if (work_.reductions > 1) {
      for (int lanes = 1; lanes <= kMaxLanes; lanes *= 2) TryChain(lanes);
      const int most = IsOnePass()   ? MostSplits()
                       : arch_ >= 90 ? kMaxCluster
                                     : 1;
      for (int blocks = 2; blocks <= most; blocks *= 2) {
        TryChainOfBlocks(blocks);
      }
      return best_;
    }
    if (work_.segment == 0) {
      const bool is_long = work_.prologue + work_.epilogue > kFewOperations;
      TryRegisters(RowKeeper::kWarp, is_long ? kMaxHeld / 2 : kMaxHeld);
    }
    for (int cluster = 1; cluster <= kMaxCluster; cluster *= 2) {
      if (cluster == 1 || arch_ >= 90) TryBlock(cluster);
    }
    if (arch_ >= 90) {
      TryTeams();
    } else {
      Refuse(RowKeeper::kTeam, 1, "the architecture has no bulk copies");
    }
    return best_;
  }

 private:
  // Of an element of all operands.
  int64_t StagedBytes() const {
    return std::accumulate(work_.staged_bytes.begin(), work_.staged_bytes.end(),
                           int64_t{0});
  }

  // Of an access's element: operands that are kept have one vector in common.
  int WidestBytes() const {
    return work_.reductions == 1 ? work_.staged_bytes[0] : HeldBytes();
  }
  // The same where all operands are held.
  int HeldBytes() const {
    return *std::max_element(work_.staged_bytes.begin(),
                             work_.staged_bytes.end());
  }

  // Blocks of a row that is read once: more than kFewSplits only as far as half
  // of them would leave multiprocessors without two blocks.
  int MostSplits() const {
    int most = kFewSplits;
    while (most < kMaxSplits && 2 * work_.rows * most < 3 * sm_count_) {
      most *= 2;
    }
    return most;
  }

  // Several reductions that one pass over the rows is enough for.
  bool IsOnePass() const { return work_.pass_state_bytes > 0; }
  // Of an element, for blocks.
  int64_t KeptBytes() const { return IsOnePass() ? 0 : work_.kept_bytes; }

  // Kept so; how threads share rows is to be chosen.
  RowGeometry KeptBy(RowKeeper keeper) const {
    RowGeometry geometry;
    geometry.keeper = keeper;
    geometry.rows = work_.rows;
    geometry.length = work_.length;
    geometry.pitch = work_.pitch;
    geometry.run = work_.run;
    geometry.vector = vector_;
    return geometry;
  }

  void Offer(RowGeometry geometry, double cost) {
    geometry.copies = work_.copies && (geometry.keeper == RowKeeper::kBlock ||
                                       geometry.keeper == RowKeeper::kColumns);
    geometry.kept_bytes = static_cast<int>(
        geometry.keeper == RowKeeper::kChain ? KeptBytes() : work_.kept_bytes);
    const bool holds =
        geometry.keeper == RowKeeper::kWarp && work_.is_read_beside;
    geometry.reads_again = (geometry.copies || holds) && work_.reads_again;
    if (seen_ != nullptr) seen_->push_back({geometry, cost, ""});
    if (cost >= best_cost_) return;
    best_cost_ = cost;
    best_ = std::move(geometry);
  }

  void Refuse(RowKeeper keeper, int cluster, const char* why) {
    if (seen_ == nullptr) return;
    RowGeometry geometry;
    geometry.keeper = keeper;
    geometry.cluster = cluster;
    seen_->push_back({geometry, 0, why});
  }

  // Vectors that a thread takes at once. 16 values in flight hide the latency
  // of memory; copies need half of them, and a long prologue hides it by
  // itself. More would only be more code.
  int AtOnce(bool copies) const {
    const int values = copies ? 8 : 16;
    return work_.prologue > 3 ? 1 : std::max(1, values / std::max(vector_, 4));
  }

  // Of a block through several reductions. Where nothing is kept, as many as
  // keep four accesses in flight, or as registers hold the values of.
  int AtOnceOfChain() const {
    if (!IsOnePass() || work_.prologue > 3) return AtOnce(true);
    const auto bytes = static_cast<int>(StagedBytes()) * vector_;
    const int for_memory = kPassBytesInFlight / bytes;
    const int values = work_.reductions + work_.beside_bytes / kWordBytes;
    const int for_registers = kPassValuesInFlight / (vector_ * values);
    const auto most = static_cast<unsigned>(
        std::clamp(std::min(for_memory, for_registers), 1, 4));
    return static_cast<int>(std::bit_floor(most));
  }

  // The threads that share a slice: as few as keep kMaxKept elements or less,
  // more where that would leave multiprocessors without a block.
  void ShareSlice(int64_t slice, RowGeometry* geometry) const {
    for (int64_t kept = kMaxKept; kept >= kMinKept; kept /= 2) {
      const auto wanted =
          std::bit_ceil(static_cast<uint64_t>(CeilDiv(slice, kept)));
      geometry->lanes = static_cast<int>(
          std::clamp<uint64_t>(wanted, kMinBlockLanes, kMaxLanes));
      geometry->threads = geometry->lanes;
      if (geometry->blocks() >= 2 * sm_count_) return;
    }
  }

  // A row has several blocks. If these are a cluster, whole blocks of it have
  // each part that a reduction is of.
  void TryChainOfBlocks(int cluster) {
    const int64_t slice = work_.length / cluster;
    if (work_.length % (int64_t{cluster} * vector_) != 0 ||
        work_.shortest % slice != 0 || slice > kMaxSlice) {
      return;
    }
    if (slice < kMinClusterSlice) {
      return Refuse(RowKeeper::kChain, cluster,
                    "the row is too short to be shared");
    }
    RowGeometry geometry = KeptBy(RowKeeper::kChain);
    geometry.cluster = cluster;
    geometry.splits = IsOnePass();
    geometry.at_once = AtOnceOfChain();
    ShareSlice(slice, &geometry);
    const int64_t stride = int64_t{geometry.lanes} * vector_;
    OfferBlocks(geometry, CeilDiv(slice, stride) * vector_ * geometry.threads *
                              KeptBytes());
  }

  // Whether so many lanes have neither too much nor too little of a row each.
  bool MayShareChain(int lanes) const {
    const auto vectors = static_cast<uint64_t>(work_.length / vector_);
    const int fewest =
        static_cast<int>(std::min(std::bit_ceil(vectors), kLineLanes));
    const int64_t kept = CeilDiv(work_.length, lanes);
    if (lanes < fewest || (lanes > fewest && kept < kMinKept)) return false;
    const bool is_idle =
        work_.rows * lanes < int64_t{kChainThreads} * sm_count_;
    const int64_t most = is_idle         ? 2 * kMinKept - 1
                         : lanes < kWarp ? kMaxHeld
                                         : kMaxChainKept;
    return lanes == kMaxLanes || kept <= most;
  }

  // Through several reductions: a row has a block, or some of a warp's lanes.
  void TryChain(int lanes) {
    if (work_.shortest < work_.length || work_.length > kMaxSlice ||
        !MayShareChain(lanes)) {
      return;
    }
    RowGeometry geometry = KeptBy(RowKeeper::kChain);
    geometry.at_once = AtOnceOfChain();
    geometry.lanes = lanes;
    geometry.threads = lanes > kWarp ? lanes : kWarpRowThreads;
    const int64_t stride = int64_t{lanes} * vector_;
    OfferBlocks(geometry, CeilDiv(work_.length, stride) * vector_ *
                              geometry.threads * KeptBytes());
  }

  // Rows in registers: each way to share them out among threads that hold up to
  // `most` elements, a half of that, a quarter.
  void TryRegisters(RowKeeper keeper, int64_t most) {
    int lanes = 0;
    const int64_t least = std::max<int64_t>(std::min(most, kMinKept), 1);
    for (int64_t held = most; held >= least; held /= 2) {
      RowGeometry geometry = KeptBy(keeper);
      ShareRegisters(held, &geometry);
      if (geometry.lanes == lanes || geometry.lanes > kMaxLanes) continue;
      lanes = geometry.lanes;
      OfferRegisters(std::move(geometry));
    }
  }

  // As few lanes of a warp as hold up to `held` elements each, or whole warps.
  void ShareRegisters(int64_t held, RowGeometry* geometry) const {
    const auto vectors = static_cast<uint64_t>(work_.length / vector_);
    const auto wanted = std::bit_ceil(static_cast<uint64_t>(
        CeilDiv(vectors, std::max<int64_t>(1, held / vector_))));
    const bool counts_bytes = vector_ > 1 && work_.reductions == 1;
    const int64_t fewest =
        counts_bytes ? kFewestBytesOfLane / WidestBytes() : kFewestOfLane;
    const auto few = static_cast<uint64_t>(CeilDiv(work_.length, fewest));
    const uint64_t lanes =
        std::max(wanted, std::bit_ceil(std::min({few, vectors, kLineLanes})));
    if (lanes > kWarp) return ShareWarps(held, geometry);
    geometry->lanes = static_cast<int>(lanes);
    ChooseSmallBlocks(geometry);
  }

  // Whole warps, with the fewest places for which there are no elements: lanes
  // hold at least half as many.
  void ShareWarps(int64_t held, RowGeometry* geometry) const {
    const int64_t vectors = work_.length / vector_;
    const int64_t most = std::max<int64_t>(1, held / vector_);
    const auto lanes_of = [&](int64_t steps) {
      return RoundUp(CeilDiv(vectors, steps), kWarp);
    };
    int64_t best = most;
    for (int64_t steps = most - 1; steps > most / 2; --steps) {
      if (steps * lanes_of(steps) < best * lanes_of(best)) best = steps;
    }
    geometry->lanes =
        static_cast<int>(std::min<int64_t>(lanes_of(best), kMaxLanes + 1));
    geometry->threads =
        std::max(1, kWarpRowThreads / geometry->lanes) * geometry->lanes;
  }

  void OfferRegisters(RowGeometry geometry) {
    if (geometry.blocks() >= int64_t{1} << 31) return;
    const double cost = cost_.RegistersUs(geometry);
    Offer(std::move(geometry), cost);
  }

  // As large as leaves no multiprocessor without one.
  void ChooseSmallBlocks(RowGeometry* geometry) const {
    geometry->threads = kWarpRowThreads;
    while (geometry->threads > 2 * kWarp &&
           geometry->blocks() < 2 * sm_count_) {
      geometry->threads /= 2;
    }
  }

  // Elements that a thread may hold through several reductions.
  int64_t MaxHeldThrough() const {
    const int64_t words = kMaxHeldWords / std::max(work_.held_values, 1);
    const int operations = work_.prologue + work_.epilogue;
    if (work_.pitch > 1 && (HeldBytes() == 2 || vector_ == 1)) {
      return std::min(words, kMaxWrittenOutOfColumns / operations);
    }
    return std::min({kMaxHeld, words, kMaxWrittenOut / operations});
  }

  // In registers through several reductions.
  void TryWarpChain() {
    if (work_.spares_registers || work_.shortest < work_.length) return;
    if (work_.pitch == 1) {
      return TryRegisters(RowKeeper::kWarpChain, MaxHeldThrough());
    }
    TryHeldColumns();
  }

  // With as few threads for each row as hold it, however little each has then,
  // and with more while half of the multiprocessors are idle. Of one reduction,
  // blocks so large that a multiprocessor has one at a time are as fast only if
  // they are one wave.
  void TryHeldColumns() {
    const int64_t most = std::max<int64_t>(MaxHeldThrough(), 1);
    const int64_t least = std::min(most, kMinKept);
    int lanes = 0;
    bool are_idle = true;
    for (int64_t held = most; held >= least && are_idle; held /= 2) {
      RowGeometry geometry = KeptBy(RowKeeper::kWarpChain);
      geometry.vector = std::min(vector_, kMaxChainColumns);
      if (!HoldColumns(held, &geometry)) return;
      const int64_t blocks = geometry.blocks();
      are_idle = 2 * blocks <= sm_count_;
      const bool are_alone = geometry.threads == kMaxLanes;
      if (work_.reductions == 1 && are_alone && blocks > sm_count_) return;
      const int64_t kept =
          CeilDiv(work_.length, geometry.lanes) * geometry.vector;
      if (geometry.lanes == lanes || (lanes > 0 && kept < kMinKept)) continue;
      lanes = geometry.lanes;
      OfferRegisters(std::move(geometry));
    }
  }

  // Threads next to each other read lines of memory. As many rows for each as
  // it can hold whole, else kHeldColumns with as few threads above each other
  // as that allows, else fewer where too many would meet.
  bool HoldColumns(int64_t held, RowGeometry* geometry) const {
    int& vector = geometry->vector;
    const auto most = [&] { return vector > kHeldColumns ? 1 : kMaxMet; };
    while (vector > 1 && HoldingLanes(held, vector) > most()) vector /= 2;
    const int lanes = HoldingLanes(held, vector);
    const auto columns = static_cast<int>(
        std::bit_ceil(static_cast<uint64_t>(work_.pitch / vector)));
    const int line = kLineBytes / (vector * HeldBytes());
    int least = std::min(columns, std::clamp(line, 1, kMaxHeldAcross));
    while (least > kMinHeldAcross && least * lanes > kMaxLanes) least /= 2;
    const auto share = [&](int threads) {
      geometry->threads = std::max(threads, least * lanes);
      geometry->lanes =
          geometry->threads / std::min(columns, geometry->threads / lanes);
    };
    share(kMinHeldThreads);
    if (geometry->lanes > lanes && geometry->blocks() >= 4 * sm_count_) {
      share(kMinHeldThreadsOfMany);
    }
    const bool has_many =
        vector == 1 && geometry->threads / geometry->lanes >= kMinHeldAcross;
    return geometry->threads <= kMaxLanes &&
           geometry->lanes <= (has_many ? kMaxMetOfOne : kMaxMet);
  }

  // As few threads as hold so many rows together, with `held` elements each.
  int HoldingLanes(int64_t held, int rows) const {
    int lanes = 1;
    while (lanes < kMaxLanes && CeilDiv(work_.length, lanes) * rows > held) {
      lanes *= 2;
    }
    return lanes;
  }

  void TryBlock(int cluster) {
    const int64_t slice = CeilDiv(work_.length / vector_, cluster) * vector_;
    if (cluster > 1 &&
        (slice < kMinClusterSlice || slice * (cluster - 1) >= work_.length)) {
      return Refuse(RowKeeper::kBlock, cluster,
                    "the row is too short to be shared");
    }
    if (work_.segment > 0 && slice % work_.segment != 0) return;
    RowGeometry geometry = KeptBy(RowKeeper::kBlock);
    geometry.cluster = cluster;
    geometry.at_once = AtOnce(work_.copies);
    ShareSlice(slice, &geometry);
    if (work_.segment > 0) ShareSegments(slice, &geometry);
    const int64_t kept_bytes = KeptBytes(geometry, slice);
    if (cluster == 1) TakeTurns(kept_bytes, &geometry);
    OfferBlocks(geometry, kept_bytes);
  }

  // Blocks of large rows, each turn behind the loads of the one before.
  void TakeTurns(int64_t kept_bytes, RowGeometry* geometry) const {
    const int64_t resident = Resident(*geometry, kept_bytes);
    if (kept_bytes < kLargeRowBytes || resident < 2 ||
        geometry->blocks() <= sm_count_) {
      return;
    }
    geometry->turns = static_cast<int>(resident);
    geometry->turn_blocks = sm_count_;
    geometry->turn_cycles = static_cast<int>(RowCost::LoadCycles(kept_bytes));
  }

  // As RowPart<Spec>::kKept of row_block.cu.
  int64_t KeptBytes(const RowGeometry& geometry, int64_t slice) const {
    const bool in_order = geometry.lanes == geometry.threads &&
                          vector_ * work_.kept_bytes <= kAccessBytes;
    if (in_order) return slice * work_.kept_bytes;
    const int64_t stride = int64_t{geometry.lanes} * vector_;
    return CeilDiv(slice, stride) * vector_ * geometry.threads *
           work_.kept_bytes;
  }

  // As many threads for each segment as there are; whole warps, but for
  // segments of less than a vector for each lane.
  void ShareSegments(int64_t slice, RowGeometry* geometry) const {
    geometry->segment = work_.segment;
    geometry->segment_vector = vector_;
    while (work_.segment % geometry->segment_vector != 0) {
      geometry->segment_vector /= 2;
    }
    const auto segments = static_cast<uint64_t>(slice / work_.segment);
    const auto vectors =
        static_cast<uint64_t>(work_.segment / geometry->segment_vector);
    const uint64_t lanes =
        std::bit_floor(static_cast<uint64_t>(geometry->threads) /
                       std::min<uint64_t>(segments, geometry->threads / kWarp));
    geometry->segment_lanes =
        static_cast<int>(std::min(lanes, std::bit_floor(vectors)));
  }

  // `beside` are the bytes of shared memory for other things.
  void OfferBlocks(RowGeometry geometry, int64_t kept_bytes,
                   int64_t beside = 0) {
    if (kept_bytes + 2 * kKiB > max_shared_bytes_) {
      return Refuse(geometry.keeper, geometry.cluster,
                    "the row does not fit in shared memory");
    }
    if (kept_bytes + beside > kStaticShared) {
      geometry.dynamic_shared_bytes = kept_bytes;
    }
    if (geometry.blocks() >= int64_t{1} << 31) return;
    const double cost =
        cost_.BlocksUs(geometry, Resident(geometry, kept_bytes + beside));
    Offer(std::move(geometry), cost);
  }

  // Strips no narrower than lines of memory, if as many threads above each
  // other as are worth it leave room for that; else half of these, or at least
  // sectors.
  void TryColumns() {
    const int64_t lanes = LanesOfColumns();
    for (int width = kLineBytes; width >= kSectorBytes; width /= 2) {
      if (TryColumns(lanes, width)) return;
      if (lanes > 1 && TryColumns(lanes / 2, width)) return;
    }
  }

  // So many that each keeps few elements of a row, and few bytes of a vector of
  // rows; more where multiprocessors would be idle, or blocks have hardly a
  // thread.
  int64_t LanesOfColumns() const {
    const int64_t columns = work_.pitch / vector_;
    const int64_t all = work_.rows / vector_;
    const auto steps = [&](int64_t lanes) {
      return CeilDiv(work_.length, lanes);
    };
    const auto are_enough = [&](int64_t lanes) {
      const int64_t bytes = steps(lanes) * vector_ * WidestBytes();
      return steps(lanes) <= kMaxColumnSteps &&
             bytes <= (lanes <= kFewColumnLanes ? kMaxColumnBytesOfFew
                                                : kMaxColumnBytes);
    };
    int64_t lanes = 1;
    while (!are_enough(lanes)) lanes *= 2;
    while (all * lanes < kMinColumnThreadsPerSm * sm_count_ &&
           steps(2 * lanes) >= kMinColumnSteps) {
      lanes *= 2;
    }
    while (2 * columns * lanes <= kMinColumnThreads &&
           2 * lanes <= work_.length) {
      lanes *= 2;
    }
    return lanes;
  }

  // Strips as wide as that takes, or so much wider that the last one is not
  // mostly empty; narrower if multiprocessors would have none. Whether that can
  // be.
  bool TryColumns(int64_t lanes, int width_bytes) {
    const int64_t all = work_.pitch / vector_;
    const auto columns_of = [&](int64_t bytes) {
      return std::clamp<int64_t>(bytes / (vector_ * WidestBytes()), 1, all);
    };
    const int64_t widest = kMaxLanes / lanes;
    if (columns_of(width_bytes) > widest) return false;
    const int64_t wanted = std::clamp(CeilDiv(kMinColumnThreads, lanes),
                                      columns_of(width_bytes), all);
    const int64_t needed = CeilDiv(sm_count_, work_.rows / work_.pitch);
    const int64_t strips = CeilDiv(all, wanted);
    if (strips >= needed &&
        static_cast<double>(strips * wanted) <= kMostEmpty * all) {
      return OfferColumns(wanted, lanes);
    }
    const int64_t most = all / columns_of(kSectorBytes);
    return OfferColumns(
        CeilDiv(all, std::max({int64_t{1}, all / wanted, CeilDiv(all, widest),
                               std::min(most, needed)})),
        lanes);
  }

  bool OfferColumns(int64_t columns, int64_t lanes) {
    RowGeometry geometry =
        KeptBy(work_.reductions > 1 ? RowKeeper::kChain : RowKeeper::kColumns);
    geometry.at_once = IsOnePass() ? AtOnceOfChain() : AtOnce(work_.copies);
    geometry.threads = static_cast<int>(columns * lanes);
    geometry.lanes = static_cast<int>(lanes);
    const int64_t kept_bytes =
        CeilDiv(work_.length, lanes) * vector_ * geometry.threads * KeptBytes();
    const int64_t state_bytes = StateBytes() * geometry.threads * vector_;
    if (kept_bytes + state_bytes + 2 * kKiB > max_shared_bytes_ ||
        state_bytes > kStaticShared) {
      return false;
    }
    OfferBlocks(geometry, kept_bytes, state_bytes);
    return true;
  }

  // Of a row, for each thread that shares it.
  int64_t StateBytes() const {
    if (IsOnePass()) return work_.pass_state_bytes;
    return work_.reductions > 1 ? kChainStateBytes : kColumnStateBytes;
  }

  // Blocks on a multiprocessor at once.
  int64_t Resident(const RowGeometry& geometry, int64_t kept_bytes) const {
    return std::min<int64_t>(max_shared_bytes_ / (kept_bytes + kKiB),
                             kThreadsPerSm / geometry.threads);
  }

  // Offers the best of one team of all multiprocessors and, of rows that leave
  // no room on one for another, several that share these out.
  void TryTeams() {
    if (!work_.publishes) return;
    for (const int bytes : work_.staged_bytes) {
      if (work_.length * bytes % kAccessBytes != 0) {
        return Refuse(RowKeeper::kTeam, 1, "a row is no multiple of 16 bytes");
      }
    }
    const bool fits_twice =
        2 * (work_.length * work_.kept_bytes + 2 * kKiB) <= max_shared_bytes_;
    std::vector<std::pair<double, RowGeometry>> fitting;
    for (int teams = 1; teams == 1 || sm_count_ / teams >= kSmallestTeam;
         ++teams) {
      if (teams > 1 && (fits_twice || teams > work_.rows)) break;
      if (const auto geometry = TeamsOf(teams)) {
        fitting.emplace_back(cost_.TeamUs(*geometry), *geometry);
      }
    }
    if (fitting.empty()) {
      return Refuse(RowKeeper::kTeam, 1,
                    "two rows do not fit in the shared memory of all blocks");
    }
    std::stable_sort(
        fitting.begin(), fitting.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    if (fitting.size() > kTeamsWeighed) fitting.resize(kTeamsWeighed);
    for (auto& [cost, geometry] : fitting) {
      Offer(std::move(geometry), cost);
    }
  }

  // Empty if two rows, so that one is exchanged while another is loaded, do not
  // fit.
  std::optional<RowGeometry> TeamsOf(int teams) const {
    const int64_t element_bytes = StagedBytes();
    RowGeometry geometry = KeptBy(RowKeeper::kTeam);
    geometry.team = sm_count_ / teams;
    geometry.teams = teams;
    geometry.staged = work_.staged;
    geometry.at_once = AtOnce(false);
    const int64_t slice = CeilDiv(work_.length, geometry.team);
    geometry.row_groups = slice <= kShortSlice       ? 4
                          : slice <= 2 * kShortSlice ? 2
                                                     : 1;
    // A counter waits longer for short chunks than it takes for their elements.
    if (WidestBytes() == 2 && geometry.at_once > 1) geometry.at_once *= 2;
    const int64_t ring = max_shared_bytes_ - kTeamControlBytes;
    const bool holds_few = ring < kFewRows * slice * element_bytes;
    ChooseFinishers(holds_few, &geometry);
    CutSlice(slice, element_bytes, holds_few ? kChunkBytes : kMaxChunkBytes,
             &geometry);
    geometry.slot_bytes = CeilDiv(geometry.chunk * element_bytes, 128) * 128;
    geometry.slots = static_cast<int>(
        std::min<int64_t>({ring / geometry.slot_bytes,
                           RowsOfTeam(geometry) * geometry.chunks, 32}));
    if (ring / geometry.slot_bytes < 2 * geometry.chunks ||
        work_.rows * geometry.chunks >= int64_t{1} << 31) {
      return std::nullopt;
    }
    // Warps must not be two phases ahead of a place (row_team.cu).
    const bool reuses = geometry.slots < RowsOfTeam(geometry) * geometry.chunks;
    while (reuses &&
           geometry.slots <= (geometry.row_groups - 1) * geometry.chunks) {
      geometry.row_groups /= 2;
    }
    geometry.dynamic_shared_bytes = geometry.slots * geometry.slot_bytes;
    return geometry;
  }

  // Of a ring that holds few rows, or more.
  void ChooseFinishers(bool holds_few, RowGeometry* geometry) const {
    // The norm or softmax among them.
    const int operations = work_.prologue + work_.epilogue;
    const auto values = vector_ * static_cast<int>(work_.staged_bytes.size() +
                                                   work_.stored_bytes.size());
    const bool are_few =
        values <= kFewFinishedValues && operations <= kFewFinishedOperations;
    const bool have_registers = values <= kMaxFinishedValues &&
                                work_.prologue <= kFewFinishedOperations &&
                                !work_.spares_registers;
    const bool have_little = holds_few && operations <= 1;
    geometry->finishers =
        have_registers && !have_little ? kFinishers : kFewFinishers;
    geometry->finished_at_once = are_few && have_registers ? 2 : 1;
  }

  // Cuts a slice into chunks, of at most so many bytes, of which finishers take
  // a whole number of turns, or nearly, and as few chunks as can be.
  void CutSlice(int64_t slice, int64_t element_bytes, int64_t most,
                RowGeometry* geometry) const {
    const int64_t fewest = CeilDiv(slice * element_bytes, most);
    int64_t fewest_turns = 0;
    for (int64_t chunks = fewest; chunks <= 2 * fewest; ++chunks) {
      const int64_t chunk =
          CeilDiv(CeilDiv(slice, chunks), kChunkElements) * kChunkElements;
      const int64_t turns = chunks * geometry->TurnsOf(chunk);
      if (fewest_turns > 0 && turns >= fewest_turns) continue;
      fewest_turns = turns;
      geometry->chunks = static_cast<int>(chunks);
      geometry->chunk = chunk;
    }
  }

  int64_t RowsOfTeam(const RowGeometry& geometry) const {
    return CeilDiv(work_.rows, geometry.teams);
  }

  const RowWork& work_;
  std::vector<RowCandidate>* const seen_;
  const int arch_;
  const int64_t max_shared_bytes_;
  const int sm_count_;
  const RowCost cost_;
  int vector_ = 1;
  double best_cost_ = 0;
  std::optional<RowGeometry> best_;
};

}  // namespace

std::optional<RowGeometry> ChooseRowGeometry(const RowWork& work,
                                             const Target& target) {
  return Choice(work, target, nullptr).Run();
}

std::vector<RowCandidate> RankRowGeometries(const RowWork& work,
                                            const Target& target) {
  std::vector<RowCandidate> seen;
  Choice(work, target, &seen).Run();
  std::stable_sort(seen.begin(), seen.end(),
                   [](const RowCandidate& a, const RowCandidate& b) {
                     const bool fits = a.refusal.empty();
                     if (fits != b.refusal.empty()) return fits;
                     return fits && a.microseconds < b.microseconds;
                   });
  return seen;
}

}  // namespace kiln
