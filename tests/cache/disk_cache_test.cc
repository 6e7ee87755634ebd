#include "cache/disk_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "tests/cache/disk_cache_testing.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST_F(DiskCacheTest, GivesBackWhatWasPut) {
  const auto cache = Open();
  EXPECT_FALSE(cache->Get(TestKey(1)));
  cache->Put(TestKey(1), "text", "payload");
  const auto record = cache->Get(TestKey(1));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->key_text, "text");
  EXPECT_EQ(record->payload, "payload");
  EXPECT_TRUE(cache->Contains(TestKey(1)));
  EXPECT_FALSE(cache->Contains(TestKey(2)));

  const DiskCache::Counters counters = cache->counters();
  EXPECT_EQ(counters.hits, 1);
  EXPECT_EQ(counters.misses, 1);
  EXPECT_EQ(counters.stores, 1);
  EXPECT_EQ(counters.entries, 1);
  EXPECT_EQ(counters.size_bytes, FileBytes(4 + 7));
  EXPECT_TRUE(counters.writable);
  EXPECT_FALSE(counters.degraded);
}

TEST_F(DiskCacheTest, KeepsEntriesOverARestart) {
  Open()->Put(TestKey(1), "text", std::string(300'000, 'x'));
  const auto cache = Open();
  EXPECT_EQ(cache->counters().entries, 1);
  ASSERT_TRUE(cache->Get(TestKey(1)));
  EXPECT_EQ(cache->Get(TestKey(1))->payload, std::string(300'000, 'x'));
}

TEST_F(DiskCacheTest, LeavesExistingEntriesAlone) {
  const auto cache = Open();
  cache->Put(TestKey(1), "", "first");
  cache->Put(TestKey(1), "", "second");
  EXPECT_EQ(cache->Get(TestKey(1))->payload, "first");
  EXPECT_EQ(cache->counters().stores, 1);
}

// Prevents a key from naming a file outside the cache.
TEST_F(DiskCacheTest, OtherKeysThanDigestsMiss) {
  const auto cache = Open();
  for (const std::string& key :
       {std::string("../../etc/passwd"), std::string(), std::string(64, 'A'),
        TestKey(1) + "0", "../" + TestKey(1).substr(3)}) {
    cache->Put(key, "", "payload");
    EXPECT_FALSE(cache->Get(key));
    EXPECT_FALSE(cache->Contains(key));
  }
  EXPECT_EQ(cache->counters().entries, 0);
}

TEST_F(DiskCacheTest, FilesAreForTheOwnerOnly) {
  const mode_t before = umask(0);
  Open()->Put(TestKey(1), "", "payload");
  umask(before);
  for (const fs::path& path :
       {directory_, directory_ / "entries", directory_ / "quarantine",
        EntryPath(directory_, TestKey(1)).parent_path()}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all) << path;
  }
  for (const fs::path& path :
       {directory_ / "lock", EntryPath(directory_, TestKey(1))}) {
    EXPECT_EQ(fs::status(path).permissions(),
              fs::perms::owner_read | fs::perms::owner_write)
        << path;
  }
}

// Each prevents another user from choosing what this one runs.
TEST_F(DiskCacheTest, RefusesASymbolicLink) {
  fs::create_directory(scratch_.path() / "target");
  fs::create_directory_symlink("target", directory_);
  EXPECT_THAT(OpenError(directory_), HasSubstr("symbolic link"));
  EXPECT_THAT(OpenError(directory_.string() + "/"), HasSubstr("symbolic link"));
}

TEST_F(DiskCacheTest, RefusesADirectoryThatOthersMayWriteTo) {
  fs::create_directory(directory_);
  for (const mode_t mode : {0770, 0707, 01777}) {
    ASSERT_EQ(chmod(directory_.c_str(), mode), 0);
    EXPECT_THAT(OpenError(directory_), HasSubstr("Others may write"));
  }
}

TEST_F(DiskCacheTest, RefusesAnotherUsersDirectory) {
  if (geteuid() != 0) {  // the parent of everything is root's
    EXPECT_THAT(OpenError("/"), HasSubstr("another user"));
    return;
  }
  fs::create_directory(directory_);
  ASSERT_EQ(chown(directory_.c_str(), 12345, 12345), 0);
  EXPECT_THAT(OpenError(directory_), HasSubstr("uid 12345"));
}

TEST_F(DiskCacheTest, RefusesAFile) {
  WriteFile(directory_, "");
  EXPECT_THAT(OpenError(directory_), HasSubstr("not a directory"));
  EXPECT_THAT(OpenError(directory_ / "below"), HasSubstr("cannot be created"));
}

TEST_F(DiskCacheTest, EvictsTheLeastRecentlyUsed) {
  const auto cache = Open(FileBytes(100) * 10);
  for (int i = 0; i < 10; ++i) {
    cache->Put(TestKey(i), "", std::string(100, 'x'));
  }
  EXPECT_EQ(cache->counters().evictions, 0);
  ASSERT_TRUE(cache->Get(TestKey(0)));
  cache->Put(TestKey(10), "", std::string(100, 'x'));

  // Down to 90%: 1 and 2 went, and the new one came.
  EXPECT_EQ(cache->counters().evictions, 2);
  EXPECT_EQ(cache->counters().entries, 9);
  EXPECT_TRUE(cache->Contains(TestKey(0)));
  EXPECT_FALSE(cache->Contains(TestKey(1)));
  EXPECT_FALSE(cache->Contains(TestKey(2)));
  EXPECT_TRUE(cache->Contains(TestKey(3)));
}

// Prevents losing the order of use on file systems mounted noatime.
TEST_F(DiskCacheTest, KeepsTheOrderOfUseOverARestart) {
  constexpr int64_t kHourMs = 3'600'000;
  {
    const auto cache = Open();
    for (int i = 0; i < 4; ++i) cache->Put(TestKey(i), "", "x");
    for (const int used : {2, 0, 3, 1}) {
      now_ms_ += 2 * kHourMs;
      ASSERT_TRUE(cache->Get(TestKey(used)));
    }
  }
  const auto cache = Open();
  const auto entries = cache->List();
  ASSERT_EQ(entries.size(), 4);
  EXPECT_EQ(entries[0].key, TestKey(1));
  EXPECT_EQ(entries[1].key, TestKey(3));
  EXPECT_EQ(entries[2].key, TestKey(0));
  EXPECT_EQ(entries[3].key, TestKey(2));
}

// Prevents a clock that once was wrong from pinning an entry.
TEST_F(DiskCacheTest, UseInTheFutureCountsAsNow) {
  Open()->Put(TestKey(1), "", "x");
  fs::last_write_time(
      EntryPath(directory_, TestKey(1)),
      fs::file_time_type::clock::now() + std::chrono::hours(24 * 365));
  EXPECT_LE(Open()->List().at(0).last_used_unix_ms, now_ms_);
}

TEST_F(DiskCacheTest, ReopeningWithALowerLimitEvicts) {
  {
    const auto cache = Open();
    for (int i = 0; i < 20; ++i) {
      cache->Put(TestKey(i), "", std::string(1000, 'x'));
    }
  }
  const auto cache = Open(10'000);
  EXPECT_LE(cache->counters().size_bytes, 9'000);
  EXPECT_GT(cache->counters().entries, 5);
}

TEST_F(DiskCacheTest, DoesNotStoreWhatCannotFit) {
  const auto cache = Open(1000);
  cache->Put(TestKey(1), "", "small");
  cache->Put(TestKey(2), "", std::string(1000, 'x'));
  EXPECT_TRUE(cache->Contains(TestKey(1)));
  EXPECT_FALSE(cache->Contains(TestKey(2)));
  EXPECT_EQ(cache->counters().store_failures, 1);
  EXPECT_TRUE(cache->counters().degraded);
}

TEST_F(DiskCacheTest, GcAndPurgeRemove) {
  const auto cache = Open();
  for (int i = 0; i < 10; ++i) {
    cache->Put(TestKey(i), "", std::string(100, 'x'));
  }
  EXPECT_EQ(cache->Gc(FileBytes(100) * 7)->entries, 3);
  EXPECT_EQ(cache->counters().evictions, 3);
  EXPECT_EQ(cache->Purge({TestKey(5), TestKey(1), "nonsense"})->entries, 1);
  const DiskCache::Removed rest = *cache->Purge({});
  EXPECT_EQ(rest.entries, 6);
  EXPECT_EQ(rest.size_bytes, FileBytes(100) * 6);
  EXPECT_EQ(cache->counters().entries, 0);
  EXPECT_EQ(FilesIn(directory_ / "entries"), 0);
}

TEST_F(DiskCacheTest, ListsKeyTexts) {
  const auto cache = Open();
  cache->Put(TestKey(1), "target: cpu\nplan:\nx\n", "payload");
  ASSERT_EQ(cache->List().size(), 1);
  EXPECT_EQ(cache->List()[0].key, TestKey(1));
  EXPECT_EQ(cache->List()[0].key_text, "target: cpu\nplan:\nx\n");
}

TEST_F(DiskCacheTest, VerifyReportsProgressAndStops) {
  const auto cache = Open();
  for (int i = 0; i < 5; ++i) cache->Put(TestKey(i), "", "x");
  int64_t calls = 0;
  EXPECT_TRUE(cache
                  ->Verify([&](int64_t checked, int64_t total) {
                    EXPECT_EQ(checked, ++calls);
                    EXPECT_EQ(total, 5);
                    return checked < 3;
                  })
                  .empty());
  EXPECT_EQ(calls, 3);
}

// Prevents a crash loop from filling the disk with half-written files.
TEST_F(DiskCacheTest, SweepsTemporaryFilesAfterAnHour) {
  Open()->Put(TestKey(1), "", "x");
  const fs::path folder = EntryPath(directory_, TestKey(1)).parent_path();
  WriteFile(folder / ".tmp-old", "half");
  WriteFile(folder / ".tmp-new", "half");
  fs::last_write_time(folder / ".tmp-old",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  const auto cache = Open();
  EXPECT_FALSE(fs::exists(folder / ".tmp-old"));
  EXPECT_TRUE(fs::exists(folder / ".tmp-new"));
  EXPECT_EQ(cache->counters().entries, 1);
}

TEST_F(DiskCacheTest, OpensTenThousandEntriesWithinASecond) {
  Open();
  for (int i = 0; i < 10'000; ++i) {
    const fs::path path = EntryPath(directory_, TestKey(i));
    fs::create_directory(path.parent_path());
    WriteFile(path, "x");
  }
  // Processor time: other processes may have the machine.
  const std::clock_t start = std::clock();
  const auto cache = Open();
  const std::clock_t elapsed = std::clock() - start;
  EXPECT_EQ(cache->counters().entries, 10'000);
  EXPECT_LT(elapsed, CLOCKS_PER_SEC);
}

// Prevents bad bytes, lost counts and races when many threads share a cache
// that evicts all the time.
TEST_F(DiskCacheTest, ManyThreadsShareASmallCache) {
  const auto cache = Open(FileBytes(1000) * 20);
  std::atomic<int64_t> bad = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const int number = (i * 7 + t * 13) % 40;
        const std::string payload(1000, static_cast<char>('a' + number % 26));
        cache->Put(TestKey(number), "", payload);
        const auto record = cache->Get(TestKey(number));
        if (record && record->payload != payload) ++bad;
        if (i % 25 == 0) cache->Purge({TestKey(number)}).IgnoreError();
        if (cache->counters().size_bytes > FileBytes(1000) * 20) ++bad;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(cache->counters().damaged, 0);
  EXPECT_EQ(cache->counters().store_failures, 0);
  EXPECT_EQ(cache->counters().entries,
            static_cast<int64_t>(FilesIn(directory_ / "entries")));
}

}  // namespace
}  // namespace kiln
