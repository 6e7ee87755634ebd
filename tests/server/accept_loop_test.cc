#include "server/accept_loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/server/captured_log.h"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

FileDescriptor ConnectTo(const std::string& path) {
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) != 0) {
    fd.Reset();
  }
  return fd;
}

void Say(const FileDescriptor& fd) { EXPECT_EQ(write(fd.get(), "x", 1), 1); }

// Whether the server closes the connection within five seconds.
bool Closed(const FileDescriptor& fd) {
  pollfd wait = {fd.get(), POLLIN, 0};
  char byte;
  return poll(&wait, 1, 5000) == 1 && read(fd.get(), &byte, 1) <= 0;
}

template <typename Condition>
bool Becomes(Condition condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

class AcceptLoopTest : public ::testing::Test {
 protected:
  // Answers one byte and counts itself.
  class Echo : public Connection {
   public:
    Echo(FileDescriptor fd, std::atomic<int>* alive, std::atomic<int>* told)
        : fd_(std::move(fd)), alive_(alive), told_(told) {
      ++*alive_;
      [[maybe_unused]] const ssize_t size = write(fd_.get(), "y", 1);
    }
    ~Echo() override { --*alive_; }
    void StopServing() override { ++*told_; }

   private:
    FileDescriptor fd_;
    std::atomic<int>* const alive_;
    std::atomic<int>* const told_;
  };

  AcceptLoopTest() {
    char folder[] = "/tmp/kiln-accept-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/s";
  }
  ~AcceptLoopTest() override {
    loop_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start(AcceptLoop::Options options) {
    loop_ = std::make_unique<AcceptLoop>(
        *ListenSocket::Open(path_), options,
        [this](FileDescriptor fd, const Peer& peer) {
          EXPECT_EQ(peer.pid, getpid());
          return std::make_unique<Echo>(std::move(fd), &alive_, &told_);
        });
  }

  bool Answers() {
    const FileDescriptor fd = ConnectTo(path_);
    if (!fd.valid()) return false;
    Say(fd);
    pollfd wait = {fd.get(), POLLIN, 0};
    char byte = 0;
    return poll(&wait, 1, 5000) == 1 && read(fd.get(), &byte, 1) == 1;
  }

  std::string folder_;
  std::string path_;
  std::atomic<int> alive_{0};
  std::atomic<int> told_{0};
  std::unique_ptr<AcceptLoop> loop_;
};

TEST_F(AcceptLoopTest, ServesOnceBytesArrive) {
  Start({});
  const FileDescriptor silent = ConnectTo(path_);
  EXPECT_TRUE(Becomes([&] { return loop_->open_connections() == 1; }));
  EXPECT_EQ(alive_, 0);
  Say(silent);
  EXPECT_TRUE(Becomes([&] { return alive_ == 1; }));
}

TEST_F(AcceptLoopTest, DestroysTheConnectionOnHangUp) {
  Start({});
  {
    const FileDescriptor fd = ConnectTo(path_);
    Say(fd);
    EXPECT_TRUE(Becomes([&] { return alive_ == 1; }));
  }
  EXPECT_TRUE(Becomes([&] { return alive_ == 0; }));
  EXPECT_EQ(loop_->open_connections(), 0);
}

// Prevents clients that never speak from using up the limit.
TEST_F(AcceptLoopTest, DropsSilentConnections) {
  Start({.max_connections = 8, .handshake_timeout = milliseconds(100)});
  const CapturedLog log;
  const FileDescriptor silent = ConnectTo(path_);
  EXPECT_TRUE(Closed(silent));
  EXPECT_EQ(loop_->counters().timed_out, 1);
  loop_.reset();
  EXPECT_THAT(log.text(), HasSubstr("pid " + std::to_string(getpid()) +
                                    " that says nothing for 100 ms"));
}

TEST_F(AcceptLoopTest, KeepsConnectionsThatSpokeInTime) {
  Start({.max_connections = 8, .handshake_timeout = milliseconds(100)});
  const FileDescriptor fd = ConnectTo(path_);
  Say(fd);
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(loop_->open_connections(), 1);
  EXPECT_EQ(loop_->counters().timed_out, 0);
}

// Prevents a flood of connections from taking the daemon down.
TEST_F(AcceptLoopTest, RefusesBeyondTheLimitAndRecovers) {
  Start({.max_connections = 5});
  std::vector<FileDescriptor> flood;
  for (int i = 0; i < 5; ++i) flood.push_back(ConnectTo(path_));
  EXPECT_TRUE(Becomes([&] { return loop_->open_connections() == 5; }));
  EXPECT_TRUE(Closed(ConnectTo(path_)));
  EXPECT_EQ(loop_->counters().refused_limit, 1);
  flood.clear();
  EXPECT_TRUE(Becomes([&] { return loop_->open_connections() == 0; }));
  EXPECT_TRUE(Answers());
}

// Prevents the death of gRPC's own listener: out of descriptors, for good.
TEST_F(AcceptLoopTest, SurvivesDescriptorExhaustion) {
  Start({});
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlimit low = limit;
  low.rlim_cur = 64;
  setrlimit(RLIMIT_NOFILE, &low);
  // A client whose accept finds no descriptor.
  FileDescriptor waiting(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::vector<FileDescriptor> hoard;
  for (;;) {
    FileDescriptor fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) break;
    hoard.push_back(std::move(fd));
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(connect(waiting.get(), reinterpret_cast<sockaddr*>(&address),
                    sizeof(address)),
            0);
  EXPECT_TRUE(Closed(waiting));
  EXPECT_EQ(loop_->counters().refused_descriptors, 1);
  hoard.clear();
  waiting.Reset();
  EXPECT_TRUE(Answers());
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_F(AcceptLoopTest, StopAcceptingKeepsConnections) {
  Start({});
  const FileDescriptor fd = ConnectTo(path_);
  Say(fd);
  EXPECT_TRUE(Becomes([&] { return alive_ == 1; }));
  loop_->StopAccepting();
  EXPECT_TRUE(Becomes([&] { return told_ == 1; }));
  EXPECT_FALSE(ConnectTo(path_).valid());
  EXPECT_EQ(alive_, 1);
}

TEST_F(AcceptLoopTest, DestroysEverythingInTheEnd) {
  Start({});
  const FileDescriptor spoke = ConnectTo(path_);
  const FileDescriptor silent = ConnectTo(path_);
  Say(spoke);
  EXPECT_TRUE(Becomes([&] { return alive_ == 1; }));
  loop_.reset();
  EXPECT_EQ(alive_, 0);
  EXPECT_TRUE(Closed(silent));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// Prevents two daemons on one socket.
TEST_F(AcceptLoopTest, LockIsExclusiveAndNamesItsHolder) {
  const auto lock = LockSocket(path_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  const auto second = LockSocket(path_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(
      std::string(second.status().message()).find(std::to_string(getpid())),
      std::string::npos);
}

TEST_F(AcceptLoopTest, SocketIsPrivateAndReplacesAStaleOne) {
  {
    const auto stale = ListenSocket::Open(path_ + ".old");
    ASSERT_TRUE(stale.ok()) << stale.status();
    std::filesystem::create_hard_link(path_ + ".old", path_);
  }
  Start({});
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(Answers());
}

// Prevents that a mistyped --socket costs its user a file.
TEST_F(AcceptLoopTest, SocketNeverReplacesAFileOrFolder) {
  const std::string file = folder_ + "/file";
  FileDescriptor made(open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  for (const std::string& taken : {file, folder_}) {
    const absl::Status status = ListenSocket::Open(taken).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(std::filesystem::exists(taken));
  }
}

TEST_F(AcceptLoopTest, SocketFolderMustBePrivateAndReal) {
  EXPECT_TRUE(PrepareSocketDir(folder_ + "/new/s").ok());
  struct stat info = {};
  ASSERT_EQ(stat((folder_ + "/new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);

  std::filesystem::create_directory_symlink(folder_, folder_ + "/link");
  EXPECT_FALSE(PrepareSocketDir(folder_ + "/link/s").ok());
  ASSERT_EQ(chmod((folder_ + "/new").c_str(), 0777), 0);
  EXPECT_FALSE(PrepareSocketDir(folder_ + "/new/s").ok());
  FileDescriptor file(
      open((folder_ + "/file").c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_FALSE(PrepareSocketDir(folder_ + "/file/s").ok());
}

// Prevents a daemon that aborts, and a lock that stays where none can serve.
TEST_F(AcceptLoopTest, SocketPathMustLeaveRoomForTheSideSocket) {
  const std::string longest = folder_ + "/new/" + std::string(104, 'x');
  const std::string fits = longest.substr(0, 104);
  EXPECT_TRUE(PrepareSocketDir(fits).ok());
  EXPECT_TRUE(ListenSocket::Open(fits + kSideSocketSuffix).ok());
  for (const std::string& path : {std::string(), fits + "x"}) {
    const absl::Status status = PrepareSocketDir(path);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(), "The socket path \"" + path +
                                    "\" cannot be used (got " +
                                    std::to_string(path.size()) +
                                    " bytes, allowed: 1 to 104); choose "
                                    "another with --socket");
  }
}

TEST_F(AcceptLoopTest, RefusesPathsThatTheKernelCannotTake) {
  const auto socket = ListenSocket::Open(folder_ + "/" + std::string(120, 'x'));
  EXPECT_EQ(socket.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kiln
