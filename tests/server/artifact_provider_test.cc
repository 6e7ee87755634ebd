#include "server/artifact_provider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "tests/server/captured_log.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

class ArtifactProviderTest : public ::testing::Test {
 protected:
  ArtifactProviderTest() {
    std::filesystem::remove_all(folder_);
    DiskCache::Options options;
    options.directory = folder_;
    disk_ = *DiskCache::Open(options);
  }
  ~ArtifactProviderTest() override {
    disk_.reset();
    std::filesystem::remove_all(folder_);
  }

  const std::filesystem::path folder_ =
      ::testing::TempDir() + "/kiln_provider_" + std::to_string(getpid());
  std::unique_ptr<DiskCache> disk_;
};

// Prevents a line of the log of which nobody can tell whose request it met.
TEST_F(ArtifactProviderTest, DropOfAnEntryIsLoggedWithTheRequest) {
  const std::string key(64, 'a');
  disk_->Put(key, "text", "no artifact");
  ASSERT_TRUE(disk_->Contains(key));
  ArtifactProvider provider(*disk_, nullptr);
  const CapturedLog log;
  const auto found = provider.Lookup(key, "0123456789abcdef");
  EXPECT_TRUE(absl::IsNotFound(found.status())) << found.status();
  EXPECT_THAT(
      log.text(),
      HasSubstr("request=0123456789abcdef Dropping the cache entry " + key));
  EXPECT_FALSE(disk_->Contains(key));
}

}  // namespace
}  // namespace kiln
