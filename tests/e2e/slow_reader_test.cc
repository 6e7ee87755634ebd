#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "client/unix_socket.h"
#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

// RFC 9113, 3.4 and 6.5: how a client begins, and the frame that is answered by
// one of the same size.
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);

// An answer that takes longer is taken for one that the daemon cannot write.
constexpr std::chrono::milliseconds kAnswerTimeout{100};
// The wait to prevent is one of 10 s since the first such answer.
constexpr std::chrono::milliseconds kAtOnce{7'000};
// It comes about in every other round, or more often.
constexpr int kRounds = 10;

void Send(const FileDescriptor& socket, std::string_view bytes) {
  ASSERT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

int UnreadBytes(const FileDescriptor& socket) {
  int bytes = 0;
  ioctl(socket.get(), FIONREAD, &bytes);
  return bytes;
}

// Asks for answers, and reads none, until the daemon cannot write any more.
void FillUp(const FileDescriptor& socket) {
  Send(socket, kPreface);
  int unread = 0;
  do {
    unread = UnreadBytes(socket);
    Send(socket, kSettings);
  } while (
      Eventually([&] { return UnreadBytes(socket) > unread; }, kAnswerTimeout));
  ASSERT_GT(unread, 0);
}

void ReadAll(const FileDescriptor& socket) {
  std::array<char, 4096> bytes;
  while (recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
}

// A connection that reads late and is the only one when it ends.
void ReadLate(const Daemon& daemon) {
  const absl::StatusOr<FileDescriptor> socket =
      client::ConnectUnix(daemon.folder() / "kilnd.sock", kAtOnce);
  ASSERT_TRUE(socket.ok()) << socket.status();
  FillUp(*socket);
  ReadAll(*socket);
}

// Prevents the next client from waiting for a thread of gRPC.
TEST(SlowReaderTest, NextClientIsAnsweredAtOnce) {
  const Daemon daemon;
  ConnectOptions options = daemon.connect_options();
  options.start_timeout = kAtOnce;
  for (int round = 0; round < kRounds; ++round) {
    ReadLate(daemon);
    const absl::StatusOr<Client> next = Client::Connect(options);
    ASSERT_TRUE(next.ok()) << next.status();
  }
}

// Prevents the daemon from holding its socket's lock when it has stopped.
TEST(SlowReaderTest, DaemonEndsAtOnce) {
  for (int round = 0; round < kRounds; ++round) {
    Daemon daemon;
    ReadLate(daemon);
    daemon.process().Signal(SIGTERM);
    ASSERT_EQ(daemon.process().Wait(kAtOnce.count()), 0);
  }
}

}  // namespace
}  // namespace kiln::e2e
