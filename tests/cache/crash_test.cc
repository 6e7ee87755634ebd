// Cuts the power after every step that changes the disk, and opens the cache
// on every disk that may be found afterwards.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <unordered_set>

#include "cache/disk_cache.h"
#include "tests/cache/scratch_directory.h"
#include "tests/cache/simulated_disk.h"

namespace kiln {
namespace {

using DataLoss = SimulatedDisk::DataLoss;

constexpr DataLoss kLosses[] = {DataLoss::kDropped, DataLoss::kHalf,
                                DataLoss::kZeros, DataLoss::kNone};
constexpr size_t kMaxSubsets = 48;  // of unflushed changes; then a sample

std::string PayloadOf(int number) {
  return std::string(50 + static_cast<size_t>(number),
                     static_cast<char>('a' + number % 26));
}

constexpr int64_t kAboutTenEntries = 2600;

std::unique_ptr<DiskCache> OpenOn(std::shared_ptr<SimulatedDisk> disk,
                                  int64_t limit_bytes) {
  DiskCache::Options options;
  options.directory = "/home/cache";
  options.limit_bytes = limit_bytes;
  options.now_unix_ms = [disk = disk.get()] { return disk->now_unix_ms; };
  options.file_ops = std::move(disk);
  auto cache = DiskCache::Open(options);
  EXPECT_TRUE(cache.ok()) << cache.status();
  return cache.ok() ? *std::move(cache) : nullptr;
}

// Runs a workload, crashing after each step. What it finds is counted.
class CrashEnumeration {
 public:
  int64_t bad_bytes = 0;
  int64_t lost_entries = 0;
  int64_t unusable = 0;
  std::unordered_set<std::string> states;
  size_t max_states = SIZE_MAX;

  void Run(bool ignore_fdatasync, bool ignore_fsync) {
    spdlog::set_level(spdlog::level::off);
    disk_->ignore_fdatasync = ignore_fdatasync;
    disk_->ignore_fsync = ignore_fsync;
    disk_->after_step = [this] { CrashHere(); };
    auto cache = OpenOn(disk_, kAboutTenEntries);
    for (int i = 0; i < 6; ++i) Put(cache.get(), i);
    cache->Purge({TestKey(2)}).IgnoreError();
    for (int i = 6; i < 16; ++i) Put(cache.get(), i);  // evicts
    // A process that dies leaves its unflushed names for the next one, which
    // must not take them for durable.
    cache.reset();
    cache = OpenOn(disk_, kAboutTenEntries);
    for (int i = 16; i < 22; ++i) Put(cache.get(), i);
    cache->Get(TestKey(20));
    disk_->after_step = nullptr;
  }

 private:
  void Put(DiskCache* cache, int number) {
    const int64_t before = cache->counters().stores;
    cache->Put(TestKey(number), "text", PayloadOf(number));
    if (cache->counters().stores > before) acknowledged_.insert(number);
  }

  // Every subset of unflushed changes if there are few; else none, all, every
  // single one, every prefix, and a random sample.
  std::vector<uint64_t> Subsets() {
    const size_t changes = std::min<size_t>(disk_->unflushed_changes(), 63);
    const uint64_t all = (uint64_t{1} << changes) - 1;
    std::vector<uint64_t> subsets;
    if (all < kMaxSubsets) {
      for (uint64_t subset = 0; subset <= all; ++subset) {
        subsets.push_back(subset);
      }
      return subsets;
    }
    for (size_t i = 0; i <= changes; ++i) {
      subsets.push_back((uint64_t{1} << i) - 1);
      subsets.push_back(all ^ ((uint64_t{1} << i) & all));
    }
    while (subsets.size() < kMaxSubsets) subsets.push_back(random_() & all);
    return subsets;
  }

  void CrashHere() {
    if (states.size() >= max_states) return;
    for (const uint64_t subset : Subsets()) {
      for (const DataLoss loss : kLosses) {
        const auto disk = disk_->AfterCrash(subset, loss);
        const std::string state =
            disk->Fingerprint() + std::to_string(acknowledged_.size());
        if (states.insert(Sha256(state)).second) Check(disk);
      }
    }
  }

  void Check(const std::shared_ptr<SimulatedDisk>& found) {
    // Removals that did not reach the disk must not cause evictions here.
    const auto cache = OpenOn(found, 10 * kAboutTenEntries);
    if (cache == nullptr) return;
    for (int i = 0; i < 22; ++i) {
      const auto record = cache->Get(TestKey(i));
      if (record && record->payload != PayloadOf(i)) ++bad_bytes;
      // Entries that were removed, or are being, may be gone or not.
      const std::string path = EntryPath("/home/cache", TestKey(i)).string();
      if (!record && acknowledged_.count(i) && disk_->Exists(path)) {
        ++lost_entries;
      }
    }
    cache->Put(TestKey(99), "text", "new");
    if (!cache->Get(TestKey(99))) ++unusable;
  }

  std::shared_ptr<SimulatedDisk> disk_ = std::make_shared<SimulatedDisk>();
  std::set<int> acknowledged_;
  std::mt19937_64 random_{42};
};

// Prevents a power cut from losing an entry that was acknowledged, serving a
// torn one, or making the cache unusable.
TEST(CrashTest, NothingAcknowledgedIsLostNothingBadIsServed) {
  CrashEnumeration run;
  run.Run(false, false);
  RecordProperty("states", static_cast<int>(run.states.size()));
  EXPECT_GE(run.states.size(), 5000);
  EXPECT_EQ(run.bad_bytes, 0);
  EXPECT_EQ(run.lost_entries, 0);
  EXPECT_EQ(run.unusable, 0);
}

// Controls: without either flush, the enumeration must find losses; even then
// what is served is right.
TEST(CrashTest, ControlWithoutFdatasyncEntriesAreLost) {
  CrashEnumeration run;
  run.max_states = 500;
  run.Run(true, false);
  EXPECT_GT(run.lost_entries, 0);
  EXPECT_EQ(run.bad_bytes, 0);
  EXPECT_EQ(run.unusable, 0);
}

TEST(CrashTest, ControlWithoutDirectoryFsyncEntriesAreLost) {
  CrashEnumeration run;
  run.max_states = 500;
  run.Run(false, true);
  EXPECT_GT(run.lost_entries, 0);
  EXPECT_EQ(run.bad_bytes, 0);
  EXPECT_EQ(run.unusable, 0);
}

}  // namespace
}  // namespace kiln
