// A daemon on a cache directory that another process writes to.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>

#include "proto/file_descriptor.h"
#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using ::testing::HasSubstr;

class SharedCacheTest : public testing::Test {
 protected:
  SharedCacheTest() {
    WriteWhole(daemon_.folder() / "plan.kiln", SmallPlanText(1));
    EXPECT_EQ(Compile().status, 0);
    daemon_.process().Signal(SIGTERM);
    EXPECT_EQ(daemon_.process().Wait(), 0);
    const auto path = daemon_.folder() / "cache" / "lock";
    WriteWhole(path, holder_ + "\n");
    lock_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(flock(lock_.get(), LOCK_EX | LOCK_NB), 0);
    daemon_.Start();
  }

  CommandResult Compile() const {
    return daemon_.Kiln(
        {"compile", daemon_.folder() / "plan.kiln", "--target", "cpu"});
  }

  Daemon daemon_;
  const std::string holder_ = std::to_string(getpid());
  FileDescriptor lock_;
};

// Prevents that a daemon that may remove nothing claims to have done so.
TEST_F(SharedCacheTest, GcAndPurgeNameTheProcessThatWrites) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"cache", "gc"},
        std::vector<std::string>{"cache", "purge", "--yes"}}) {
    const CommandResult result = daemon_.Kiln(command);
    EXPECT_EQ(result.status, 1) << result.out;
    EXPECT_THAT(result.err, HasSubstr("(pid " + holder_ + ")"));
  }
  EXPECT_EQ(daemon_.Stats().entries(), 1);
}

// Prevents that nobody sees why nothing is stored.
TEST_F(SharedCacheTest, NotBeingTheWriterShows) {
  EXPECT_THAT(daemon_.log(), HasSubstr("(pid " + holder_ + ")"));
  EXPECT_THAT(daemon_.Kiln({"cache", "stats", "--json"}).out,
              HasSubstr("\"writable\": false"));
  const CommandResult doctor = daemon_.Kiln({"doctor"});
  EXPECT_THAT(doctor.out, HasSubstr("warn  cache"));

  lock_ = FileDescriptor();
  WriteWhole(daemon_.folder() / "plan.kiln", SmallPlanText(2));
  EXPECT_EQ(Compile().status, 0);
  EXPECT_TRUE(daemon_.Stats().writable());
  EXPECT_EQ(daemon_.Stats().stores(), 1);
}

}  // namespace
}  // namespace kiln::e2e
