#include "server/artifact_provider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "proto/plan_converter.h"
#include "tests/server/captured_log.h"
#include "tests/server/cpu_artifact.h"
#include "tests/server/waiting.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

class ArtifactProviderTest : public ::testing::Test {
 protected:
  ArtifactProviderTest() {
    std::filesystem::remove_all(folder_);
    OpenDisk(DiskCache::Options().limit_bytes);
  }
  ~ArtifactProviderTest() override {
    disk_.reset();
    std::filesystem::remove_all(folder_);
  }

  void OpenDisk(int64_t limit_bytes) {
    disk_.reset();
    DiskCache::Options options;
    options.directory = folder_;
    options.limit_bytes = limit_bytes;
    disk_ = *DiskCache::Open(options);
  }

  // What `provider` finds or compiles of kReluPlan for the cpu target.
  static v1::Source SourceOfRelu(ArtifactProvider& provider) {
    const absl::StatusOr<ArtifactProvider::Found> found = Relu(provider);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->source : v1::SOURCE_UNSPECIFIED;
  }
  static absl::StatusOr<ArtifactProvider::Found> Relu(
      ArtifactProvider& provider) {
    Answer<ArtifactProvider::Found> answer;
    provider.Get(ReluRequest(), {"", false}, answer.callback());
    return answer.Get();
  }
  static KeyedRequest ReluRequest() {
    return *MakeKeyedRequest(ToProto(CanonicalOf(kReluPlan).plan), "cpu",
                             v1::GRADE_UNSPECIFIED, "");
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

// Prevents that an entry which is evicted, set aside or removed by hand is
// never on disk again as long as the daemon runs.
TEST_F(ArtifactProviderTest, WhatIsInMemoryAloneIsStoredAgain) {
  const std::string key = ReluRequest().key;
  const std::string path =
      folder_ / "entries" / key.substr(0, 2) / (key + ".kiln");
  ArtifactProvider provider(*disk_, nullptr);
  EXPECT_EQ(SourceOfRelu(provider), v1::COMPILED);
  ASSERT_TRUE(disk_->Contains(key));
  EXPECT_EQ(SourceOfRelu(provider), v1::MEMORY);
  EXPECT_EQ(disk_->counters().stores, 1);

  ASSERT_EQ(disk_->Gc(0)->entries, 1);
  EXPECT_EQ(SourceOfRelu(provider), v1::MEMORY);
  EXPECT_TRUE(disk_->Contains(key));

  std::filesystem::resize_file(path, 100);
  ASSERT_EQ(disk_->Verify(nullptr).size(), 1u);
  EXPECT_EQ(SourceOfRelu(provider), v1::MEMORY);
  EXPECT_TRUE(disk_->Contains(key));

  std::filesystem::remove(path);
  EXPECT_EQ(SourceOfRelu(provider), v1::MEMORY);
  EXPECT_TRUE(disk_->Get(key));
  EXPECT_EQ(provider.counters().compiles, 1);
}

// Prevents that a cache which was full and is emptied by hand stores nothing.
TEST_F(ArtifactProviderTest, RoomThatIsMadeByHandIsUsed) {
  const std::string key = ReluRequest().key;
  OpenDisk(64 << 10);
  ArtifactProvider provider(*disk_, nullptr);
  EXPECT_EQ(SourceOfRelu(provider), v1::COMPILED);
  const int64_t left = (64 << 10) - disk_->counters().size_bytes;
  disk_->Put(std::string(64, 'a'), "", std::string(left - 200, 'x'));
  ASSERT_EQ(disk_->counters().entries, 2);
  std::filesystem::remove_all(folder_ / "entries");
  EXPECT_EQ(SourceOfRelu(provider), v1::MEMORY);
  EXPECT_TRUE(disk_->Get(key));
  EXPECT_EQ(disk_->counters().entries, 1);
}

// Prevents a write for every hit while writes fail.
TEST_F(ArtifactProviderTest, WhatCannotBeStoredAgainIsTriedOnceAMinute) {
  const std::string key = ReluRequest().key;
  ArtifactProvider provider(*disk_, nullptr);
  EXPECT_EQ(SourceOfRelu(provider), v1::COMPILED);
  ASSERT_EQ(disk_->Gc(0)->entries, 1);
  const std::filesystem::path entries = folder_ / "entries";
  std::filesystem::remove_all(entries);
  std::ofstream(entries) << "in the way";
  EXPECT_EQ(SourceOfRelu(provider), v1::MEMORY);
  EXPECT_EQ(SourceOfRelu(provider), v1::MEMORY);
  EXPECT_EQ(disk_->counters().store_failures, 1);
}

}  // namespace
}  // namespace kiln
