#include "jit/compile/row_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int kWarp = 32;

// One multiprocessor's share of the memory bandwidth, and what
// starting one more kernel costs, on an H100.
constexpr double kBytesPerUs = 23'000;
constexpr double kClockMhz = 1750;
constexpr double kLaunchUs = 2.5;
// The others by 645 times of 145 plans (docs/kernel-notes, "A sixth
// survey"). From a kernel's start to its end, whatever it does.
constexpr double kStartUs = 4.4;
// Of the bandwidth, what a block alone on a multiprocessor gets, which loads,
// computes and stores by turns: where it copies, and where threads load. And of
// a last wave of blocks, what it takes of a whole one, beside its share.
constexpr double kAloneCopying = 0.92;
constexpr double kAlone = 0.8;
constexpr double kShareOfBegun = 0.1;
// Where others have no block, a multiprocessor gets so many times its share.
constexpr double kMostShares = 2;
// What a multiprocessor takes for each element that threads load one at a time;
// that they put into shared memory once it is computed; and where rows lie side
// by side there.
constexpr double kSingleUs = 4.7e-5;
constexpr double kPutUs = 6e-5;
constexpr double kColumnUs = 1.1e-4;
// What a block of rows side by side takes at least, from its loads to its
// stores, and how many of them a multiprocessor has at once.
constexpr double kColumnTurnUs = 2.7;
constexpr int64_t kMostBlocks = 32;
// Through several reductions, what rows side by side take of all that in shared
// memory: by hand, from 40 plans on an H200.
constexpr double kThroughColumnsShare = 1.25;
// What each of its warps takes to merge a reduction: within itself, with
// others, and where shared memory has the elements.
constexpr double kMergeWarpUs = 0.002;
constexpr double kMergeUs = 0.006;
constexpr double kMergeBlockUs = 0.02;
// What a thread takes for each of its elements, one behind the other. And for
// each reduction what blocks take that have the elements in shared memory, and
// what clusters take besides: where all are resident at once and no other
// kernel runs in front of them, only once, by their size. That and what teams
// take of single rows by 190 times of 36 plans on an H200.
constexpr double kHeldUs = 0.018;
constexpr double kMeetUs = 0.6;
constexpr double kClusterUs = 5.7;
constexpr double kClusterAtOnceUs = 0.4;
constexpr double kClusterBlockUs = 0.25;
// What a multiprocessor takes for an operation on an element, where no other
// block loads meanwhile; what is computed of rows' numbers counts, too. By 150
// times of 48 plans on an H200.
constexpr double kOperationUs = 2e-5;
// What statistics and results in kernels of their own take beside their bytes
// and launches: more where rows lie side by side. What starting one of them
// costs where rows are neighbours and nothing is computed in front of their
// statistics; and, of several reductions, another that merges what blocks have.
constexpr double kPlainUs = 0.9;
constexpr double kPlainShare = 1.12;
constexpr double kPlainColumnShare = 1.4;
constexpr double kPlainLaunchUs = 2.0;
constexpr double kMergeLaunchUs = 1.2;
// For each element a multiprocessor computes what the statistics are taken of
// twice: so much for an operation.
constexpr double kAgainUs = 3e-5;
// Teams take so much of what their own model says.
constexpr double kTeamShare = 0.96;
// Registers of a thread that holds a row's elements.
constexpr int64_t kOtherRegisters = 32;
constexpr double kRegistersPerHeld = 1.5;
constexpr double kRegistersPerSm = 65536;
constexpr int kHeldThreadsPerSm = 1536;
// A second read is served by the L2 cache up to this size, so much cheaper.
constexpr int64_t kCachedBytes = 30'000'000;
constexpr double kCachedCost = 0.3;
// What a team takes for a row at least, however short, and until its ring is
// full and behind its last row: for each member, if it has several rows, and of
// what a slice takes. By 60 times of seven plans in teams of 8 to 132
// (docs/kernel-notes).
constexpr double kTeamRowUs = 0.4;
constexpr double kExchangeUs = 10;
constexpr double kTeamFillUs = 6;
constexpr double kMemberUs = 0.03;
// What the next kernel waits for longer, for none of its blocks fits beside a
// team's.
constexpr double kTeamNextUs = 0.7;
constexpr double kShareOfFirst = 0.6;
constexpr double kTeamEfficiency = 0.93;
// How much of the time of a slice grows with what its finishers have less than
// a whole turn of. By hand, from 60 times of 14 plans on an H200.
constexpr double kShareOfTurns = 0.3;

double Sum(const std::vector<int>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

bool IsInRegisters(const RowGeometry& geometry) {
  return geometry.keeper == RowKeeper::kWarp || geometry.is_warp_chain();
}

// Of so many reductions. `at_once`: see kClusterAtOnceUs.
double MeetingUs(const RowGeometry& geometry, int reductions, bool at_once) {
  if (IsInRegisters(geometry)) return 0;
  if (geometry.splits) return reductions * kLaunchUs;
  const double blocks_us = reductions * kMeetUs;
  if (geometry.cluster == 1) return blocks_us;
  return blocks_us +
         (at_once ? kClusterAtOnceUs + kClusterBlockUs * geometry.cluster
                  : reductions * kClusterUs);
}

// How full so many waves of blocks are, the last one begun.
double FullShare(double waves) {
  const double begun = waves - std::floor(waves);
  const double last =
      begun > 0 ? kShareOfBegun + (1 - kShareOfBegun) * begun : 0;
  return waves / (std::floor(waves) + last);
}

}  // namespace

RowCost::RowCost(const RowWork& work, int sm_count)
    : work_(work),
      sm_count_(sm_count),
      elements_(static_cast<double>(work.rows) *
                static_cast<double>(work.length)) {}

double RowCost::LoadedBytes() const {
  return elements_ * Sum(work_.staged_bytes);
}

double RowCost::StoredBytes() const {
  return elements_ * Sum(work_.stored_bytes);
}

double RowCost::Microseconds(double bytes) const {
  return bytes / (kBytesPerUs * sm_count_);
}

double RowCost::LoadCycles(int64_t bytes) {
  return static_cast<double>(bytes) / kBytesPerUs * kClockMhz;
}

double RowCost::PlainUs() const {
  const double share = work_.pitch > 1 ? kPlainColumnShare : kPlainShare;
  const double again = LoadedBytes() <= kCachedBytes ? kCachedCost : 1.0;
  const bool splits = work_.rows < 2 * sm_count_;
  if (work_.reductions > 1) {
    const double once = LoadedBytes() + StoredBytes();
    const double more = elements_ * work_.apart_bytes - once;
    return kPlainUs +
           share * (Microseconds(once + again * std::max(more, 0.0)) +
                    kLaunchUs * work_.apart_kernels +
                    (splits ? kMergeLaunchUs * work_.reductions : 0));
  }
  // A fit: of rows that another kernel makes as they are these took as long as
  // two launches, where split rows have three.
  const bool has_two = work_.prologue == 0 && !work_.comes_first;
  const bool is_plain = work_.prologue == 0 && work_.pitch == 1;
  return kPlainUs + kAgainUs * work_.prologue * elements_ / sm_count_ +
         share * (Microseconds(LoadedBytes() * (1 + again) + StoredBytes()) +
                  (is_plain ? kPlainLaunchUs : kLaunchUs) *
                      (splits && !has_two ? 3 : 2));
}

double RowCost::RegistersUs(const RowGeometry& geometry) const {
  const double tensors =
      geometry.is_warp_chain() ? static_cast<double>(work_.staged.size()) : 1;
  const double registers =
      kOtherRegisters + kRegistersPerHeld * Held(geometry) * tensors;
  const double threads =
      std::min<double>(kHeldThreadsPerSm, kRegistersPerSm / registers);
  return BlocksUs(geometry, static_cast<int64_t>(threads / geometry.threads), 0,
                  geometry.lanes > kWarp ? kMergeUs : kMergeWarpUs);
}

double RowCost::BlocksUs(const RowGeometry& geometry, int64_t resident) const {
  const bool is_chain = work_.reductions > 1;
  if (!is_chain && work_.pitch > 1) {
    return std::max(
        BlocksUs(geometry, resident, kColumnUs, 0),
        kStartUs +
            kColumnTurnUs * static_cast<double>(geometry.blocks()) /
                static_cast<double>(
                    std::clamp(resident, int64_t{1}, kMostBlocks) * sm_count_));
  }
  const bool puts = !is_chain && !work_.copies;
  return BlocksUs(geometry, resident, puts ? kPutUs : 0, kMergeBlockUs) *
         (work_.pitch > 1 && work_.pass_state_bytes == 0 ? kThroughColumnsShare
                                                         : 1.0);
}

// A row takes a team as long as its slices take to be moved, and no less than
// the exchange of statistics leaves for each of the rows that are in the ring
// meanwhile.
double RowCost::TeamUs(const RowGeometry& geometry) const {
  const int64_t rows = CeilDiv(work_.rows, geometry.teams);
  const double bytes = Sum(work_.staged_bytes) + Sum(work_.stored_bytes);
  const auto slice = static_cast<double>(geometry.chunks * geometry.chunk);
  const auto turns =
      static_cast<double>(geometry.chunks * geometry.TurnsOf(geometry.chunk));
  const double idle = turns / slice - 1;
  const double slice_us = slice * bytes / (kBytesPerUs * kTeamEfficiency) *
                          (1 + kShareOfTurns * idle);
  const double others =
      static_cast<double>(geometry.slots) / geometry.chunks - 1;
  // Where the ring holds all rows, none waits for another's place.
  const double turn_us = geometry.slots < rows * geometry.chunks
                             ? std::max(kTeamRowUs, kExchangeUs / others)
                             : kTeamRowUs;
  const double row_us = rows == 1 ? slice_us : std::max(slice_us, turn_us);
  const double members_us = rows == 1 ? 0 : kMemberUs * geometry.team;
  return kTeamShare * (row_us * static_cast<double>(rows) + kTeamFillUs +
                       members_us + kShareOfFirst * slice_us) +
         (work_.is_read_next ? kTeamNextUs : 0);
}

// Of blocks, `resident` of them on a multiprocessor at once. What follows the
// loads hides behind others' only where there are others.
double RowCost::BlocksUs(const RowGeometry& geometry, int64_t resident,
                         double element_us, double merge_us) const {
  const auto blocks = static_cast<double>(geometry.blocks());
  const double waves =
      blocks /
      (static_cast<double>(std::max<int64_t>(resident, 1)) * sm_count_);
  // Where nothing is kept, few threads keep too little in flight.
  const bool streams = work_.pass_state_bytes > 0 && !IsInRegisters(geometry);
  const double busy = std::min(streams ? waves : blocks / sm_count_, 1.0);
  const int passes = streams ? 1 : work_.reductions;
  const double memory_us = Microseconds(LoadedBytes() + StoredBytes()) /
                           (resident > 1       ? 1.0
                            : Copies(geometry) ? kAloneCopying
                                               : kAlone);
  const double warps = blocks * geometry.threads / kWarp;
  const double elements_us =
      elements_ * (element_us + (geometry.vector == 1 ? kSingleUs : 0));
  const double issue_us = (elements_us + merge_us * passes * warps) / sm_count_;
  const double fed = streams ? busy : std::min(kMostShares * busy, 1.0);
  const bool at_once = waves <= 1 && work_.comes_first;
  return kStartUs + memory_us / (waves > 1 ? FullShare(waves) : fed) +
         issue_us / busy + (streams ? 0 : kHeldUs * Held(geometry)) +
         MeetingUs(geometry, passes, at_once) +
         OperationsUs(geometry, waves, resident);
}

// What is computed of elements that blocks keep, if nothing hides it: through
// several reductions each computes what stands in front of the first again. The
// norm or softmax does not count.
double RowCost::OperationsUs(const RowGeometry& geometry, double waves,
                             int64_t resident) const {
  const bool is_chain = work_.reductions > 1;
  if (IsInRegisters(geometry) || work_.pitch > 1 ||
      work_.pass_state_bytes > 0) {
    return 0;
  }
  if (waves > 1 && !(is_chain && resident == 1)) return 0;
  const int operations =
      is_chain ? work_.prologue * work_.reductions + work_.epilogue
               : work_.prologue + work_.epilogue - 1;
  const double busy =
      std::min(static_cast<double>(geometry.blocks()) / sm_count_, 1.0);
  return kOperationUs * operations * elements_ / (sm_count_ * busy);
}

// Whether rows come to shared memory behind the threads' backs.
bool RowCost::Copies(const RowGeometry& geometry) const {
  return !IsInRegisters(geometry) && (work_.reductions > 1 || work_.copies);
}

// Elements that a thread has.
double RowCost::Held(const RowGeometry& geometry) const {
  const int64_t along = work_.pitch > 1 ? 1 : geometry.vector;
  const int64_t stride = int64_t{geometry.cluster} * geometry.lanes * along;
  return static_cast<double>(CeilDiv(work_.length, stride) * geometry.vector);
}

}  // namespace kiln
