#include "client/cli/file_bytes.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLimit = 1 << 20;

class FileBytesTest : public testing::Test {
 protected:
  FileBytesTest() : folder_(testing::TempDir() + "file_bytes_test") {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~FileBytesTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) { return folder_ / name; }

  const fs::path folder_;
};

TEST_F(FileBytesTest, ReadsUpToTheLimit) {
  ASSERT_TRUE(WriteFile(Path("a"), "12345678").ok());
  EXPECT_EQ(ReadFile(Path("a"), "a test", 8).value_or(""), "12345678");
  const absl::Status longer = ReadFile(Path("a"), "a test", 7).status();
  EXPECT_TRUE(absl::IsInvalidArgument(longer)) << longer;
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReadFile("/dev/zero", "a test", kLimit).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadFile(Path("b"), "a test", 7).status()));
}

}  // namespace
}  // namespace kiln::cli
