// Real processes, really killed.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>
#include <thread>

#include "cache/disk_cache.h"
#include "tests/cache/scratch_directory.h"
#include "tests/cache/test_payload.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

// A cache_writer whose output goes to a file.
class Child {
 public:
  Child(const fs::path& directory, const fs::path& output, int first, int count,
        bool reader) {
    std::vector<std::string> words = {KILN_CACHE_WRITER, directory.string(),
                                      std::to_string(first),
                                      std::to_string(count)};
    if (reader) words.push_back("reader");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int failed =
        posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    EXPECT_EQ(failed, 0);
  }

  void Kill() { kill(pid_, SIGKILL); }
  // The wait status.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
};

std::set<int> Numbers(const fs::path& file) {
  std::ifstream stream(file);
  std::set<int> numbers;
  for (int number = 0; stream >> number;) numbers.insert(number);
  return numbers;
}

uintmax_t SizeOf(const fs::path& file) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

void WaitUntilItGrows(const fs::path& file, uintmax_t size) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (SizeOf(file) <= size && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class KillTest : public ::testing::Test {
 protected:
  // Every acknowledged entry is a hit, and nothing else is served.
  void ExpectWhole(const std::set<int>& acknowledged) {
    DiskCache::Options options;
    options.directory = directory_;
    const auto cache = DiskCache::Open(options);
    ASSERT_TRUE(cache.ok()) << cache.status();
    for (const int number : acknowledged) {
      const auto record = (*cache)->Get(TestKey(number));
      ASSERT_TRUE(record) << "entry " << number << " is lost";
      ASSERT_EQ(record->payload, TestPayload(number));
    }
    EXPECT_TRUE((*cache)->Verify(nullptr).empty());
    EXPECT_EQ((*cache)->counters().damaged, 0);
  }

  ScratchDirectory scratch_;
  const fs::path directory_ = scratch_.path() / "cache";
  const fs::path output_ = scratch_.path() / "acknowledged";
};

// Prevents an acknowledged entry from being lost with its writer.
TEST_F(KillTest, FiftyKillsLoseNothing) {
  std::mt19937_64 random(50);
  int killed = 0;
  for (int round = 0; round < 50; ++round) {
    const uintmax_t before = SizeOf(output_);
    Child child(directory_, output_, round * 1000, 1000, false);
    // Every fifth dies while it starts, the others while they store.
    if (round % 5 != 0) WaitUntilItGrows(output_, before);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    child.Kill();
    killed += WIFSIGNALED(child.Wait()) ? 1 : 0;
  }
  const std::set<int> acknowledged = Numbers(output_);
  RecordProperty("acknowledged", static_cast<int>(acknowledged.size()));
  EXPECT_GE(killed, 40);
  EXPECT_GE(acknowledged.size(), 40);
  ExpectWhole(acknowledged);
}

// Prevents two processes on one directory from harming each other, while one
// of them is killed: the other takes over or only reads.
TEST_F(KillTest, WritersAndReadersShareADirectory) {
  for (int round = 0; round < 5; ++round) {
    Child first(directory_, output_, 0, 150, false);
    Child second(directory_, output_, 100, 150, false);
    Child reader(directory_, output_, 0, 250, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (round % 2 == 0) first.Kill();
    first.Wait();
    EXPECT_EQ(second.Wait(), 0);
    EXPECT_EQ(reader.Wait(), 0);
  }
  ExpectWhole(Numbers(output_));
}

// The control: an entry that was acknowledged and then torn is noticed.
TEST_F(KillTest, ControlATornEntryIsNoticed) {
  Child child(directory_, output_, 0, 3, false);
  ASSERT_EQ(child.Wait(), 0);
  ASSERT_EQ(Numbers(output_), (std::set<int>{0, 1, 2}));
  fs::resize_file(EntryPath(directory_, TestKey(1)), 5000);
  DiskCache::Options options;
  options.directory = directory_;
  const auto cache = DiskCache::Open(options);
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ((*cache)->Verify(nullptr).size(), 1);
  EXPECT_FALSE((*cache)->Get(TestKey(1)));
}

}  // namespace
}  // namespace kiln
