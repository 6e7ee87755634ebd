#ifndef KILN_TESTS_CACHE_DISK_CACHE_TESTING_H_
#define KILN_TESTS_CACHE_DISK_CACHE_TESTING_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "cache/disk_cache.h"
#include "cache/entry_format.h"
#include "tests/cache/scratch_directory.h"

namespace kiln {

// A cache in a folder of its own, whose clock stands until a test moves it.
class DiskCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<DiskCache> Open(int64_t limit_bytes = 1 << 30) {
    DiskCache::Options options;
    options.directory = directory_;
    options.limit_bytes = limit_bytes;
    options.now_unix_ms = [this] { return now_ms_; };
    auto cache = DiskCache::Open(options);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return cache.ok() ? *std::move(cache) : nullptr;
  }
  std::string OpenError(const std::filesystem::path& directory) {
    DiskCache::Options options;
    options.directory = directory;
    const absl::Status status = DiskCache::Open(options).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    return std::string(status.message());
  }

  ScratchDirectory scratch_;
  const std::filesystem::path directory_ = scratch_.path() / "cache";
  int64_t now_ms_ = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
};

// The size of the file of an entry with an empty key text.
inline int64_t FileBytes(int64_t payload_bytes) {
  return static_cast<int64_t>(kEntryOverheadBytes) + payload_bytes;
}

}  // namespace kiln

#endif  // KILN_TESTS_CACHE_DISK_CACHE_TESTING_H_
