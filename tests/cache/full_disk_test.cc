// A disk that is really full. Root gets a file system of 1 MiB; others a limit
// on the size of files, at which write(2) fails in the same place.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cache/disk_cache.h"
#include "tests/cache/scratch_directory.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

// Makes a directory's file system too small, for as long as it lives.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& path) : path_(path) {
    fs::create_directory(path);
    mounted_ =
        mount("tmpfs", path.c_str(), "tmpfs", 0, "size=1m,mode=0700") == 0;
    if (mounted_) return;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit small = before_;
    small.rlim_cur = 150 << 10;
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    if (mounted_) {
      umount2(path_.c_str(), MNT_DETACH);
    } else {
      setrlimit(RLIMIT_FSIZE, &before_);
    }
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }

 private:
  fs::path path_;
  bool mounted_ = false;
  rlimit before_ = {};
};

// Prevents a full disk from stopping the daemon, tearing an entry, or losing
// those that are there.
TEST(FullDiskTest, StoresWhatFitsAndServesIt) {
  ScratchDirectory scratch;
  SmallDisk disk(scratch.path() / "disk");
  RecordProperty("disk", disk.mounted() ? "tmpfs" : "RLIMIT_FSIZE");
  DiskCache::Options options;
  options.directory = scratch.path() / "disk" / "cache";
  auto cache = DiskCache::Open(options);
  ASSERT_TRUE(cache.ok()) << cache.status();

  // The twenty entries alone exceed the disk, the large ones also the limit.
  for (int i = 0; i < 20; ++i) {
    const size_t size = i % 2 == 0 ? 50'000 : 200'000;
    (*cache)->Put(TestKey(i), "text", std::string(size, 'x'));
  }
  const DiskCache::Counters full = (*cache)->counters();
  EXPECT_GT(full.stores, 0);
  EXPECT_GT(full.store_failures, 0);
  EXPECT_EQ(full.stores, full.entries);
  int64_t hits = 0;
  for (int i = 0; i < 20; ++i) hits += (*cache)->Get(TestKey(i)) ? 1 : 0;
  EXPECT_EQ(hits, full.stores);
  EXPECT_EQ(FilesIn(options.directory / "entries"),
            static_cast<size_t>(full.entries));

  ASSERT_TRUE((*cache)->Purge({}).ok());
  (*cache)->Put(TestKey(30), "text", "room again");
  EXPECT_TRUE((*cache)->Get(TestKey(30)));
  EXPECT_FALSE((*cache)->counters().degraded);
  EXPECT_EQ((*cache)->counters().damaged, 0);
}

}  // namespace
}  // namespace kiln
