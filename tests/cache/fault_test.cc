// Fails the k-th system call, for every k, every kind of call and every error
// that a disk is known to give. Whatever fails, the cache answers: what it
// gives back is right, and what it loses is only ever a hit.

#include <gtest/gtest.h>

#include "cache/disk_cache.h"
#include "tests/cache/faulty_file_ops.h"
#include "tests/cache/scratch_directory.h"
#include "tests/cache/simulated_disk.h"

namespace kiln {
namespace {

constexpr int kErrors[] = {ENOSPC, EIO, EMFILE, EDQUOT, EROFS, EINTR};
constexpr Call kCalls[] = {Call::kOpen,      Call::kPread, Call::kWrite,
                           Call::kFdatasync, Call::kFsync, Call::kRename,
                           Call::kUnlink,    Call::kMkdir, Call::kStat,
                           Call::kLock,      Call::kList};

std::string PayloadOf(int number) {
  return std::string(200, static_cast<char>('a' + number));
}

DiskCache::Options OptionsFor(std::shared_ptr<FileOps> ops) {
  spdlog::set_level(spdlog::level::off);
  DiskCache::Options options;
  options.directory = "/cache";
  options.limit_bytes = 2400;  // about six entries
  options.file_ops = std::move(ops);
  options.now_unix_ms = [] { return int64_t{1'000'000'000'000}; };
  return options;
}

// Puts, gets, evicts, purges, restarts; expects right answers only.
void Exercise(const std::shared_ptr<FileOps>& ops) {
  for (int round = 0; round < 2; ++round) {
    const auto cache = DiskCache::Open(OptionsFor(ops));
    if (!cache.ok()) {
      EXPECT_TRUE(absl::IsFailedPrecondition(cache.status()));
      continue;
    }
    for (int i = 0; i < 9; ++i) {
      (*cache)->Put(TestKey(i), "text", PayloadOf(i));
      const auto record = (*cache)->Get(TestKey(i));
      if (record) {
        EXPECT_EQ(record->payload, PayloadOf(i));
      }
      const DiskCache::Counters counters = (*cache)->counters();
      EXPECT_LE(counters.size_bytes, counters.limit_bytes);
    }
    (*cache)->List();
    (*cache)->Verify(nullptr);
    (*cache)->Purge({TestKey(8)}).IgnoreError();
  }
}

// After the fault has passed, everything works again.
void ExpectRecovered(const std::shared_ptr<FileOps>& ops) {
  const auto cache = DiskCache::Open(OptionsFor(ops));
  ASSERT_TRUE(cache.ok()) << cache.status();
  (*cache)->Put(TestKey(20), "text", PayloadOf(20));
  const auto record = (*cache)->Get(TestKey(20));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->payload, PayloadOf(20));
  EXPECT_FALSE((*cache)->counters().degraded);
}

// Prevents an error that nobody thought of, at a call that nobody thought of,
// from stopping the service or corrupting an answer.
TEST(FaultTest, AnyCallMayFailOnce) {
  int64_t cases = 0;
  for (const Call call : kCalls) {
    for (const int error_number : kErrors) {
      for (int64_t k = 1;; ++k) {
        auto faults =
            std::make_shared<FaultyFileOps>(std::make_shared<SimulatedDisk>());
        faults->Fail(call, k, error_number, false);
        Exercise(faults);
        if (faults->failures() == 0) break;  // k is past the last call
        faults->Fail(call, 0, 0, false);
        ExpectRecovered(faults);
        ++cases;
      }
    }
  }
  RecordProperty("cases", static_cast<int>(cases));
  EXPECT_GT(cases, 2000);
}

TEST(FaultTest, AnyCallMayFailFromThenOn) {
  for (const Call call : kCalls) {
    for (const int error_number : kErrors) {
      if (error_number == EINTR) continue;  // nothing is interrupted for ever
      for (int64_t k = 1;; k += 3) {
        auto faults =
            std::make_shared<FaultyFileOps>(std::make_shared<SimulatedDisk>());
        faults->Fail(call, k, error_number, true);
        Exercise(faults);
        if (faults->failures() == 0) break;
        faults->Fail(call, 0, 0, false);
        ExpectRecovered(faults);
      }
    }
  }
}

// Prevents that the limit is exceeded while directories cannot be listed.
TEST(FaultTest, WhatCannotBeListedStillTakesRoom) {
  for (const Call call : {Call::kList, Call::kStat}) {
    auto faults =
        std::make_shared<FaultyFileOps>(std::make_shared<SimulatedDisk>());
    const auto cache = DiskCache::Open(OptionsFor(faults));
    ASSERT_TRUE(cache.ok());
    for (int i = 0; i < 3; ++i) {
      (*cache)->Put(TestKey(i), "text", PayloadOf(i));
    }
    faults->Fail(call, 2, EMFILE, true);
    (*cache)->Refresh();
    EXPECT_GT(faults->failures(), 0);
    EXPECT_EQ((*cache)->counters().entries, 3);
  }
}

TEST(FaultTest, InterruptedCallsAreRepeated) {
  for (const Call call : {Call::kOpen, Call::kWrite, Call::kFdatasync,
                          Call::kRename, Call::kPread, Call::kFsync}) {
    auto faults =
        std::make_shared<FaultyFileOps>(std::make_shared<SimulatedDisk>());
    const auto cache = DiskCache::Open(OptionsFor(faults));
    ASSERT_TRUE(cache.ok());
    faults->Fail(call, 1, EINTR, false);
    (*cache)->Put(TestKey(1), "text", PayloadOf(1));
    ASSERT_TRUE((*cache)->Get(TestKey(1)));
    EXPECT_EQ(faults->failures(), 1);
    EXPECT_EQ((*cache)->counters().store_failures, 0);
  }
}

// Prevents claiming that an entry is stored when it is not, and leaving half
// of it behind.
TEST(FaultTest, AFailedStoreIsCountedAndLeavesNothing) {
  for (const Call call :
       {Call::kOpen, Call::kWrite, Call::kFdatasync, Call::kRename}) {
    auto disk = std::make_shared<SimulatedDisk>();
    auto faults = std::make_shared<FaultyFileOps>(disk);
    const auto cache = DiskCache::Open(OptionsFor(faults));
    ASSERT_TRUE(cache.ok());
    (*cache)->Put(TestKey(1), "text", PayloadOf(1));  // makes directories
    ASSERT_TRUE((*cache)->Purge({}).ok());
    const std::string before = disk->Fingerprint();

    faults->Fail(call, 1, ENOSPC, false);
    (*cache)->Put(TestKey(1), "text", PayloadOf(1));
    EXPECT_EQ((*cache)->counters().store_failures, 1);
    EXPECT_EQ((*cache)->counters().stores, 1);
    EXPECT_TRUE((*cache)->counters().degraded);
    EXPECT_EQ(disk->Fingerprint(), before);

    (*cache)->Put(TestKey(1), "text", PayloadOf(1));
    EXPECT_FALSE((*cache)->counters().degraded);
    EXPECT_TRUE((*cache)->Get(TestKey(1)));
  }
}

// The control of the tests above: the fake does make calls fail.
TEST(FaultTest, FaultsAreInjected) {
  for (const Call call : kCalls) {
    auto faults =
        std::make_shared<FaultyFileOps>(std::make_shared<SimulatedDisk>());
    faults->Fail(call, 1, EIO, true);
    Exercise(faults);
    EXPECT_GT(faults->failures(), 0) << static_cast<int>(call);
  }
}

}  // namespace
}  // namespace kiln
