#include "client/cli/file_bytes.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
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

// Prevents half a file, or none of it, from being taken for all.
TEST_F(FileBytesTest, WhatCannotBeReadIsNotTheEndOfTheFile) {
  // No process has its first page.
  const absl::Status unread =
      ReadFile("/proc/self/mem", "a test", kLimit).status();
  EXPECT_EQ(unread.message(),
            "The file /proc/self/mem cannot be read: Input/output error");
  EXPECT_EQ(ReadFile(folder_, "a test", kLimit).status().message(),
            "The file " + folder_.string() + " cannot be read: Is a directory");
}

class WriteFileTest : public FileBytesTest {
 protected:
  WriteFileTest() : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &limit_);
  }
  ~WriteFileTest() override {
    setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, signal_);
  }

  // Writing beyond so many bytes of a file fails, as on a full disk.
  void LimitFiles(rlim_t bytes) {
    const rlimit limit = {bytes, limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  std::string Content(const std::string& name) {
    return ReadFile(Path(name), "a test", kLimit).value_or("");
  }
  int FilesInFolder() {
    return static_cast<int>(std::distance(fs::directory_iterator(folder_), {}));
  }

 private:
  void (*const signal_)(int);
  rlimit limit_ = {};
};

// Prevents half a file from being taken for a whole one.
TEST_F(WriteFileTest, LeavesWhatWasThereWhenItFails) {
  ASSERT_TRUE(WriteFile(Path("old"), "what was there").ok());
  LimitFiles(4096);
  for (const char* name : {"old", "new"}) {
    const absl::Status status = WriteFile(Path(name), std::string(10'000, 'x'));
    EXPECT_EQ(status.message(),
              "The file " + Path(name) + " cannot be written: File too large");
  }
  EXPECT_EQ(Content("old"), "what was there");
  EXPECT_EQ(FilesInFolder(), 1);
}

TEST_F(WriteFileTest, KeepsPermissionsAndLinks) {
  ASSERT_TRUE(WriteFile(Path("a"), "first").ok());
  const fs::perms mode = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(Path("a"), mode);
  fs::create_symlink("a", Path("link"));
  ASSERT_TRUE(WriteFile(Path("a"), "second").ok());
  EXPECT_EQ(fs::status(Path("a")).permissions(), mode);
  ASSERT_TRUE(WriteFile(Path("link"), "third").ok());
  EXPECT_EQ(Content("a"), "third");
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(FilesInFolder(), 2);
}

TEST_F(WriteFileTest, KeepsHardLinks) {
  ASSERT_TRUE(WriteFile(Path("a"), "first").ok());
  fs::create_hard_link(Path("a"), Path("b"));
  ASSERT_TRUE(WriteFile(Path("a"), "second").ok());
  EXPECT_EQ(Content("b"), "second");
}

TEST_F(WriteFileTest, WritesDevicesInPlace) {
  EXPECT_TRUE(WriteFile("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(WriteFile("/dev/full", "x").message(),
            "The file /dev/full cannot be written: No space left on device");
  EXPECT_EQ(
      WriteFile(folder_, "x").message(),
      "The file " + folder_.string() + " cannot be written: Is a directory");
  EXPECT_TRUE(absl::IsNotFound(WriteFile(Path("none/x"), "x")));
}

}  // namespace
}  // namespace kiln::cli
