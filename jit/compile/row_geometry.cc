#include "jit/compile/row_geometry.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <string>

namespace kiln {
namespace {

constexpr int64_t kKiB = 1024;
// What a block may have without asking for more.
constexpr int64_t kStaticShared = 46 * kKiB;
// Barriers, statistics and alignment of row_team.cu, beside its ring.
constexpr int64_t kTeamControl = 4 * kKiB;
constexpr int kAccessBytes = 16;
constexpr int kMaxCluster = 8;  // what every device with clusters offers
constexpr int kWarp = 32;
constexpr int kMinBlockLanes = 128;
constexpr int kMaxLanes = 512;
constexpr int kMaxWarpRowThreads = 128;
// Elements of a row that a thread keeps, at most and at least.
constexpr int64_t kMaxKept = 32;
constexpr int64_t kMinKept = 8;
// Smaller slices are not worth an exchange between blocks.
constexpr int64_t kMinClusterSlice = 2048;
// Bytes of a chunk: large enough for the copy engine, small enough that many
// are in flight.
constexpr int64_t kChunkBytes = 8 * kKiB;
// Chunk positions are multiples of this many elements: 16 bytes of any type.
constexpr int64_t kChunkElements = 8;

// The cost model. One multiprocessor's share of the memory bandwidth, and what
// starting one more kernel costs, on an H100.
constexpr double kBytesPerUs = 23'000;
constexpr double kLaunchUs = 2.5;
// A second read is served by the L2 cache up to this size, so much cheaper.
constexpr int64_t kCachedBytes = 30'000'000;
constexpr double kCachedCost = 0.3;
// Exchanging a row's statistics takes this long, for four rows at a time.
constexpr double kTeamRowUs = 0.4;
constexpr double kTeamEfficiency = 0.93;

int ArchNumber(const std::string& arch) {
  return arch.size() > 3 ? std::atoi(arch.c_str() + 3) : 0;
}

// Shared memory of a multiprocessor that one block may have (CUDA programming
// guide, technical specifications per compute capability).
int64_t SharedBytesPerBlock(int arch) {
  if (arch < 75) return 48 * kKiB;
  if (arch == 75) return 64 * kKiB;
  if (arch == 80 || arch == 87) return 163 * kKiB;
  if (arch < 90 || arch >= 120) return 99 * kKiB;
  return 227 * kKiB;
}

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename Container>
double Sum(const Container& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

class Choice {
 public:
  Choice(const RowWork& work, const Target& target,
         std::vector<RowCandidate>* seen)
      : work_(work),
        seen_(seen),
        arch_(ArchNumber(target.arch)),
        sm_count_(std::max(target.sm_count, 1)),
        elements_(static_cast<double>(work.rows) *
                  static_cast<double>(work.length)) {
    vector_ = kAccessBytes / work.staged_bytes[0];
    while (work.length % vector_ != 0) vector_ /= 2;
  }

  std::optional<RowGeometry> Run() && {
    best_cost_ = PlainCost();
    if (seen_ != nullptr) seen_->push_back({std::nullopt, best_cost_, ""});
    for (int cluster = 1; cluster <= kMaxCluster; cluster *= 2) {
      if (cluster == 1 || arch_ >= 90) TryBlock(cluster);
    }
    if (arch_ >= 90) {
      TryTeam();
    } else {
      Refuse(RowKeeper::kTeam, 1, "the architecture has no bulk copies");
    }
    return best_;
  }

 private:
  double LoadedBytes() const { return elements_ * Sum(work_.staged_bytes); }
  double StoredBytes() const { return elements_ * Sum(work_.stored_bytes); }

  double Microseconds(double bytes, double efficiency) const {
    return bytes / (kBytesPerUs * sm_count_ * efficiency);
  }

  // Two kernels, or three where rows are split.
  double PlainCost() const {
    const double again = LoadedBytes() <= kCachedBytes ? kCachedCost : 1.0;
    return Microseconds(LoadedBytes() * (1 + again) + StoredBytes(), 1) +
           kLaunchUs * (work_.rows < 2 * sm_count_ ? 3 : 2);
  }

  void Offer(RowGeometry geometry, double cost) {
    geometry.rows = work_.rows;
    geometry.length = work_.length;
    geometry.vector = vector_;
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

  // Vectors that a thread loads at once: 16 values hide the latency of memory;
  // a long prologue does so by itself, and its code should not be repeated.
  int AtOnce() const {
    return work_.prologue > 3 ? 1 : std::max(1, 16 / std::max(vector_, 4));
  }

  // The threads that share a slice: as few as keep kMaxKept elements or less,
  // more where that would leave multiprocessors without a block. Warps with
  // rows of their own share a block; rows of several warps would wait for each
  // other at its barriers.
  void ShareSlice(int64_t slice, RowGeometry* geometry) const {
    for (int64_t kept = kMaxKept; kept >= kMinKept; kept /= 2) {
      const auto wanted =
          std::bit_ceil(static_cast<uint64_t>(DivideUp(slice, kept)));
      if (wanted > kWarp || geometry->cluster > 1) {
        geometry->lanes = static_cast<int>(
            std::clamp<uint64_t>(wanted, kMinBlockLanes, kMaxLanes));
        geometry->threads = geometry->lanes;
        if (geometry->blocks() >= 2 * sm_count_) return;
        continue;
      }
      geometry->lanes = static_cast<int>(wanted);
      for (int threads = kMaxWarpRowThreads; threads >= 2 * kWarp;
           threads /= 2) {
        geometry->threads = threads;
        if (geometry->blocks() >= 2 * sm_count_) return;
      }
    }
  }

  void TryBlock(int cluster) {
    const int64_t slice = DivideUp(work_.length / vector_, cluster) * vector_;
    if (cluster > 1 &&
        (slice < kMinClusterSlice || slice * (cluster - 1) >= work_.length)) {
      return Refuse(RowKeeper::kBlock, cluster,
                    "the row is too short to be shared");
    }
    RowGeometry geometry;
    geometry.rows = work_.rows;
    geometry.cluster = cluster;
    geometry.at_once = AtOnce();
    ShareSlice(slice, &geometry);
    const int64_t stride = int64_t{geometry.lanes} * vector_;
    const int64_t kept_bytes =
        DivideUp(slice, stride) * vector_ * geometry.threads * 4;
    if (kept_bytes + 2 * kKiB > SharedBytesPerBlock(arch_)) {
      return Refuse(RowKeeper::kBlock, cluster,
                    "the row does not fit in shared memory");
    }
    if (kept_bytes > kStaticShared) geometry.dynamic_shared_bytes = kept_bytes;
    if (geometry.blocks() >= int64_t{1} << 31) return;
    Offer(geometry, Microseconds(LoadedBytes() + StoredBytes(),
                                 BlockEfficiency(geometry, kept_bytes)) +
                        kLaunchUs);
  }

  // Of the bandwidth: multiprocessors without a block waste their share, and
  // a block alone on one loads and stores by turns.
  double BlockEfficiency(const RowGeometry& geometry,
                         int64_t kept_bytes) const {
    const int64_t resident =
        std::min<int64_t>(SharedBytesPerBlock(arch_) / (kept_bytes + kKiB),
                          2048 / geometry.threads);
    const double overlap = resident <= 1 ? 0.6 : resident == 2 ? 0.8 : 0.97;
    const double busy = static_cast<double>(geometry.blocks()) / sm_count_;
    const double exchange =
        0.97 - 0.01 * std::bit_width(static_cast<unsigned>(geometry.cluster));
    return overlap * std::min(busy, 1.0) * exchange;
  }

  void TryTeam() {
    if (!work_.publishes) return;
    for (const int bytes : work_.staged_bytes) {
      if (work_.length * bytes % kAccessBytes != 0) {
        return Refuse(RowKeeper::kTeam, 1, "a row is no multiple of 16 bytes");
      }
    }
    const auto element_bytes = static_cast<int64_t>(Sum(work_.staged_bytes));
    const int64_t slice = DivideUp(work_.length, sm_count_);
    RowGeometry geometry;
    geometry.keeper = RowKeeper::kTeam;
    geometry.team = sm_count_;
    geometry.staged = work_.staged;
    geometry.at_once = AtOnce();
    geometry.chunks =
        static_cast<int>(DivideUp(slice * element_bytes, kChunkBytes));
    geometry.chunk =
        DivideUp(DivideUp(slice, geometry.chunks), kChunkElements) *
        kChunkElements;
    geometry.slot_bytes = DivideUp(geometry.chunk * element_bytes, 128) * 128;
    const int64_t ring = SharedBytesPerBlock(arch_) - kTeamControl;
    geometry.slots = static_cast<int>(std::min<int64_t>(
        {ring / geometry.slot_bytes, work_.rows * geometry.chunks, 32}));
    // Two rows, so that one is exchanged while another is loaded.
    if (ring / geometry.slot_bytes < 2 * geometry.chunks) {
      return Refuse(RowKeeper::kTeam, 1,
                    "two rows do not fit in the shared memory of all blocks");
    }
    if (work_.rows * geometry.chunks >= int64_t{1} << 31) return;
    geometry.dynamic_shared_bytes = geometry.slots * geometry.slot_bytes;
    // The first row is loaded, and the last one stored, with nothing beside.
    const double row_us = Microseconds(
        (LoadedBytes() + StoredBytes()) / static_cast<double>(work_.rows),
        kTeamEfficiency);
    const double per_row = std::max(row_us, kTeamRowUs);
    Offer(geometry,
          per_row * static_cast<double>(work_.rows) + row_us + 3 * kLaunchUs);
  }

  const RowWork& work_;
  std::vector<RowCandidate>* const seen_;
  const int arch_;
  const int sm_count_;
  const double elements_;
  int vector_ = 1;
  double best_cost_ = 0;
  std::optional<RowGeometry> best_;
};

}  // namespace

int64_t RowGeometry::blocks() const {
  if (keeper == RowKeeper::kTeam) return team;
  return DivideUp(rows, threads / lanes) * cluster;
}

Requirements RowGeometry::requirements() const {
  Requirements requires_;
  if (keeper == RowKeeper::kTeam) {
    requires_.min_sm_count = team;
    requires_.cooperative = true;
    requires_.shared_optin_bytes = dynamic_shared_bytes + kTeamControl;
  } else if (dynamic_shared_bytes > 0) {
    requires_.shared_optin_bytes = dynamic_shared_bytes + 2 * kKiB;
  }
  if (cluster > 1) requires_.cluster_size = cluster;
  return requires_;
}

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
