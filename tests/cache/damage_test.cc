// What a disk, an administrator or an attacker may leave where an entry should
// be. Each must be a miss that is quarantined, counted and replaceable.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "cache/disk_cache.h"
#include "cache/entry_format.h"
#include "tests/cache/faulty_file_ops.h"
#include "tests/cache/scratch_directory.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    options_.directory = scratch_.path() / "cache";
    options_.file_ops = faults_;
  }

  std::unique_ptr<DiskCache> Open() { return *DiskCache::Open(options_); }
  fs::path PathOf(int number) {
    return EntryPath(options_.directory, TestKey(number));
  }

  // Stores an entry, damages it, and expects what this file promises.
  void ExpectMissAndQuarantine(
      const std::function<void(const fs::path&)>& damage) {
    const auto cache = Open();
    cache->Put(TestKey(1), "text", std::string(500, 'x'));
    damage(PathOf(1));
    ExpectSetAside(cache.get());
  }

  void ExpectSetAside(DiskCache* cache) {
    EXPECT_FALSE(cache->Get(TestKey(1)));
    EXPECT_EQ(cache->counters().damaged, 1);
    EXPECT_EQ(cache->counters().entries, 0);
    EXPECT_FALSE(fs::exists(fs::symlink_status(PathOf(1))));
    cache->Put(TestKey(1), "text", "good");
    ASSERT_TRUE(cache->Get(TestKey(1)));
    EXPECT_EQ(cache->Get(TestKey(1))->payload, "good");
    EXPECT_EQ(cache->counters().damaged, 1);
  }

  int Quarantined() {
    int count = 0;
    for (const auto& entry :
         fs::directory_iterator(options_.directory / "quarantine")) {
      count += entry.path().empty() ? 0 : 1;
    }
    return count;
  }

  ScratchDirectory scratch_;
  std::shared_ptr<FaultyFileOps> faults_ =
      std::make_shared<FaultyFileOps>(std::make_shared<FileOps>());
  DiskCache::Options options_;
};

TEST_F(DamageTest, FlippedBit) {
  ExpectMissAndQuarantine([](const fs::path& path) {
    std::string bytes = ReadFile(path);
    bytes[300] = static_cast<char>(bytes[300] ^ 4);
    WriteFile(path, bytes);
  });
  EXPECT_EQ(Quarantined(), 1);
}

TEST_F(DamageTest, Truncated) {
  ExpectMissAndQuarantine(
      [](const fs::path& path) { fs::resize_file(path, 400); });
}

TEST_F(DamageTest, ZeroLength) {
  ExpectMissAndQuarantine(
      [](const fs::path& path) { fs::resize_file(path, 0); });
}

TEST_F(DamageTest, AnotherKeysFile) {
  const auto cache = Open();
  cache->Put(TestKey(1), "", "one");
  cache->Put(TestKey(2), "", "two");
  fs::rename(PathOf(2), PathOf(1));
  EXPECT_FALSE(cache->Get(TestKey(1)));
  EXPECT_EQ(cache->counters().damaged, 1);
}

TEST_F(DamageTest, FutureVersion) {
  ExpectMissAndQuarantine([](const fs::path& path) {
    std::string bytes = ReadFile(path);
    bytes[8] = 99;
    WriteFile(path, bytes);
  });
}

TEST_F(DamageTest, DirectoryInItsPlace) {
  ExpectMissAndQuarantine([](const fs::path& path) {
    fs::remove(path);
    fs::create_directories(path / "nested");
  });
}

TEST_F(DamageTest, SymbolicLinkToAGoodEntry) {
  ExpectMissAndQuarantine([this](const fs::path& path) {
    fs::rename(path, scratch_.path() / "elsewhere");
    fs::create_symlink(scratch_.path() / "elsewhere", path);
  });
  EXPECT_TRUE(fs::exists(scratch_.path() / "elsewhere"));
}

// Prevents a hang: opening a fifo waits for its other end.
TEST_F(DamageTest, FifoInItsPlace) {
  ExpectMissAndQuarantine([](const fs::path& path) {
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  });
}

TEST_F(DamageTest, SparseHugeFile) {
  for (const uintmax_t size : {uintmax_t{2} << 30, uintmax_t{200} << 20}) {
    ExpectMissAndQuarantine([size](const fs::path& path) {
      fs::remove(path);
      WriteFile(path, "");
      fs::resize_file(path, size);
    });
    EXPECT_EQ(Quarantined(), 0);  // too large to keep
    EXPECT_LT(faults_->bytes_asked_for(), 1 << 20);
    ASSERT_TRUE(Open()->Purge({}).ok());
  }
}

// The header of a good entry, with a hole of 100 MiB behind it. Prevents a few
// bytes on disk from costing as much memory as they claim.
TEST_F(DamageTest, GoodHeaderAndSparseTail) {
  ExpectMissAndQuarantine(
      [](const fs::path& path) { fs::resize_file(path, 100 << 20); });
  EXPECT_LT(faults_->bytes_asked_for(), 1 << 20);
}

// Root reads files of any mode, so the error is injected as well.
TEST_F(DamageTest, Unreadable) {
  const auto cache = Open();
  cache->Put(TestKey(1), "text", "x");
  fs::permissions(PathOf(1), fs::perms::none);
  faults_->Fail(Call::kOpen, 1, EACCES, true);
  EXPECT_FALSE(cache->Get(TestKey(1)));
  faults_->Fail(Call::kOpen, 0, 0, false);
  ExpectSetAside(cache.get());
}

// Prevents a shortage of descriptors from destroying good entries.
TEST_F(DamageTest, ShortagesAreNoDamage) {
  const auto cache = Open();
  cache->Put(TestKey(1), "", "x");
  for (const int error_number : {EMFILE, ENFILE, ENOMEM}) {
    faults_->Fail(Call::kOpen, 1, error_number, false);
    EXPECT_FALSE(cache->Get(TestKey(1)));
    EXPECT_EQ(cache->counters().damaged, 0);
    EXPECT_TRUE(cache->Get(TestKey(1)));
  }
}

TEST_F(DamageTest, VerifyFindsEveryPlantedFault) {
  const auto cache = Open();
  for (int i = 0; i < 200; ++i) {
    cache->Put(TestKey(i), "", std::string(100, 'x'));
  }
  for (int i = 0; i < 200; i += 2) {
    std::string bytes = ReadFile(PathOf(i));
    bytes[static_cast<size_t>(i)] =
        static_cast<char>(bytes[static_cast<size_t>(i)] ^ 1);
    WriteFile(PathOf(i), bytes);
  }
  const auto damaged = cache->Verify(nullptr);
  EXPECT_EQ(damaged.size(), 100);
  EXPECT_EQ(cache->counters().damaged, 100);
  EXPECT_EQ(cache->counters().entries, 100);
  EXPECT_TRUE(cache->Verify(nullptr).empty());
}

// Prevents a failing disk from filling itself with evidence.
TEST_F(DamageTest, QuarantineKeepsSixtyFourFiles) {
  const auto cache = Open();
  for (int i = 0; i < 100; ++i) {
    cache->Put(TestKey(i), "", "x");
    fs::resize_file(PathOf(i), 10);
    EXPECT_FALSE(cache->Get(TestKey(i)));
  }
  EXPECT_EQ(Quarantined(), 64);
  EXPECT_EQ(cache->counters().damaged, 100);
  EXPECT_EQ(FilesIn(options_.directory / "entries"), 0);
}

// A reader must not move files under the writer.
TEST_F(DamageTest, ReadersCountButDoNotMove) {
  const auto writer = Open();
  const auto reader = Open();
  writer->Put(TestKey(1), "", "x");
  fs::resize_file(PathOf(1), 10);
  EXPECT_FALSE(reader->Get(TestKey(1)));
  EXPECT_EQ(reader->counters().damaged, 1);
  EXPECT_TRUE(fs::exists(PathOf(1)));
  EXPECT_FALSE(writer->Get(TestKey(1)));
  EXPECT_FALSE(fs::exists(PathOf(1)));
}

}  // namespace
}  // namespace kiln
