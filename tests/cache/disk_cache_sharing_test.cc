// Caches whose folder others use, too, or have changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "tests/cache/disk_cache_testing.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using DiskCacheSharingTest = DiskCacheTest;

TEST_F(DiskCacheSharingTest, OneWritesTheOthersRead) {
  const auto writer = Open();
  const auto reader = Open();
  EXPECT_FALSE(reader->counters().writable);
  reader->Put(TestKey(1), "", "x");
  EXPECT_FALSE(reader->Contains(TestKey(1)));
  EXPECT_EQ(reader->counters().store_failures, 0);

  writer->Put(TestKey(2), "text", "y");
  ASSERT_TRUE(reader->Get(TestKey(2)));
  EXPECT_EQ(reader->List().size(), 1);
  EXPECT_EQ(reader->Purge({}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(reader->Gc(0).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(writer->Contains(TestKey(2)));
}

// Prevents that nobody finds the process that has to end.
TEST_F(DiskCacheSharingTest, WhoOnlyReadsSaysWhoWrites) {
  const auto writer = Open();
  const auto reader = Open();
  EXPECT_THAT(std::string(reader->Purge({}).status().message()),
              HasSubstr("(pid " + std::to_string(getpid()) + ")"));
  // Prevents that a process is stopped which only has the id of one that was
  // killed: the last id is that of no process, the one before of another.
  for (const char* text : {"", "x", "1", "4194305"}) {
    WriteFile(directory_ / "lock", text);
    EXPECT_THAT(std::string(reader->Gc(0).status().message()),
                HasSubstr("(pid unknown)"))
        << text;
  }
}

TEST_F(DiskCacheSharingTest, ALockThatCannotBeOpenedIsSaid) {
  fs::create_directories(directory_ / "lock");
  const auto cache = Open();
  EXPECT_FALSE(cache->counters().writable);
  EXPECT_THAT(std::string(cache->Gc(0).status().message()),
              HasSubstr("cannot be taken (Is a directory)"));
}

// Prevents a cache from staying read-only after the writer has gone.
TEST_F(DiskCacheSharingTest, AReaderTakesOverWhenTheWriterEnds) {
  auto writer = Open();
  const auto reader = Open();
  writer->Put(TestKey(1), "", "x");
  writer.reset();
  reader->Put(TestKey(2), "", "y");
  EXPECT_TRUE(reader->counters().writable);
  EXPECT_EQ(reader->counters().entries, 2);
  EXPECT_TRUE(reader->Get(TestKey(2)));
}

TEST_F(DiskCacheSharingTest, AnEntryThatSomeoneRemovedIsAMiss) {
  const auto cache = Open();
  cache->Put(TestKey(1), "", "x");
  fs::remove(EntryPath(directory_, TestKey(1)));
  EXPECT_FALSE(cache->Get(TestKey(1)));
  EXPECT_EQ(cache->counters().damaged, 0);
  EXPECT_EQ(cache->counters().entries, 0);
  cache->Put(TestKey(1), "", "again");
  EXPECT_TRUE(cache->Get(TestKey(1)));
  // What only the index knows does not count as stored.
  fs::remove(EntryPath(directory_, TestKey(1)));
  cache->Put(TestKey(1), "", "once more");
  EXPECT_TRUE(cache->Contains(TestKey(1)));
  EXPECT_EQ(cache->counters().entries, 1);
}

// Prevents evictions for files that are no longer there.
TEST_F(DiskCacheSharingTest, WhatSomeoneRemovedMakesRoom) {
  const auto cache = Open(FileBytes(1000) * 3);
  for (const int number : {1, 2, 3}) {
    cache->Put(TestKey(number), "", std::string(1000, 'x'));
  }
  fs::remove(EntryPath(directory_, TestKey(2)));
  fs::remove(EntryPath(directory_, TestKey(3)));
  cache->Put(TestKey(4), "", std::string(1000, 'x'));
  EXPECT_TRUE(cache->Contains(TestKey(1)));
  EXPECT_EQ(cache->counters().entries, 2);
  EXPECT_EQ(cache->counters().size_bytes, FileBytes(1000) * 2);
  EXPECT_EQ(cache->counters().evictions, 0);
}

// Prevents that a full cache stays full when someone has emptied its folder.
TEST_F(DiskCacheSharingTest, OneMissingFileTellsOfOthers) {
  const auto cache = Open();
  for (const bool reads : {false, true}) {
    for (int number = 0; number < 9; ++number) {
      cache->Put(TestKey(number), "", "x");
    }
    ASSERT_EQ(cache->counters().entries, 9);
    fs::remove_all(directory_ / "entries");
    EXPECT_FALSE(reads ? cache->Get(TestKey(4)).has_value()
                       : cache->Contains(TestKey(4)));
    EXPECT_EQ(cache->counters().entries, 0);
    EXPECT_EQ(cache->counters().size_bytes, 0);
  }
}

TEST_F(DiskCacheSharingTest, RefreshCountsFilesAndKeepsTheOrderOfUse) {
  const auto cache = Open(FileBytes(1000) * 5);
  for (const int number : {1, 2, 3, 4}) {
    cache->Put(TestKey(number), "", std::string(1000, 'x'));
  }
  EXPECT_TRUE(cache->Get(TestKey(1)));
  // Of use within an hour the file tells nothing.
  fs::last_write_time(EntryPath(directory_, TestKey(1)),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  fs::remove(EntryPath(directory_, TestKey(3)));
  const fs::path copied = EntryPath(directory_, TestKey(5));
  fs::create_directories(copied.parent_path());
  WriteFile(copied, SerializeEntry(TestKey(5), "", "x", "elsewhere"));
  fs::last_write_time(copied,
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache->Refresh();
  EXPECT_EQ(cache->counters().entries, 4);
  EXPECT_EQ(cache->counters().size_bytes, FileBytes(1000) * 3 + FileBytes(1));
  const auto entries = cache->List();
  ASSERT_EQ(entries.size(), 4u);
  for (const auto& [place, number] :
       {std::pair(0, 1), std::pair(1, 4), std::pair(2, 2), std::pair(3, 5)}) {
    EXPECT_EQ(entries[place].key, TestKey(number)) << place;
  }
  EXPECT_EQ(cache->Gc(FileBytes(1000) * 2)->entries, 2);
  EXPECT_TRUE(cache->Contains(TestKey(1)));
  EXPECT_TRUE(cache->Contains(TestKey(4)));
}

TEST_F(DiskCacheSharingTest, SurvivesRemovalOfItsDirectories) {
  const auto cache = Open();
  cache->Put(TestKey(1), "", "x");
  fs::remove_all(directory_ / "entries");
  EXPECT_FALSE(cache->Get(TestKey(1)));
  cache->Put(TestKey(1), "", "again");
  EXPECT_TRUE(cache->Get(TestKey(1)));
}

TEST_F(DiskCacheSharingTest, AnEntryThatSomeoneCopiedInIsAHit) {
  const auto cache = Open();
  const std::string bytes = SerializeEntry(TestKey(1), "", "x", "elsewhere");
  fs::create_directories(EntryPath(directory_, TestKey(1)).parent_path());
  WriteFile(EntryPath(directory_, TestKey(1)), bytes);
  EXPECT_TRUE(cache->Get(TestKey(1)));
  EXPECT_EQ(cache->counters().entries, 1);
  EXPECT_EQ(cache->counters().size_bytes, static_cast<int64_t>(bytes.size()));
}

}  // namespace
}  // namespace kiln
