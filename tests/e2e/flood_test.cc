#include <gtest/gtest.h>

#include "client/unix_socket.h"
#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

constexpr int kLimit = 80;
constexpr int kSilent = 200;

// Opens silent connections, as many as the daemon's backlog takes, and closes
// them again.
void Flood(const Daemon& daemon) {
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < kSilent; ++i) {
    auto connection =
        client::ConnectUnix((daemon.folder() / "kilnd.sock").string());
    if (connection.ok()) silent.push_back(*std::move(connection));
  }
  EXPECT_GE(silent.size(), static_cast<size_t>(kLimit));
}

void ExpectThreeGoodCalls(const Daemon& daemon) {
  for (int i = 0; i < 3; ++i) {
    const bool served = Eventually([&] {
      absl::StatusOr<Client> client = Client::Connect(daemon.connect_options());
      return client.ok() && client->Compile(SmallPlan(i)).ok();
    });
    EXPECT_TRUE(served) << i;
  }
}

// Prevents a flood of connections from stopping the accept loop for good.
TEST(FloodTest, ServesAfterMoreSilentConnectionsThanItsLimit) {
  const Daemon daemon({"--max-connections", std::to_string(kLimit)});
  Flood(daemon);
  ExpectThreeGoodCalls(daemon);
}

// The same when the process has no descriptors left.
TEST(FloodTest, ServesAfterItsDescriptorsRanOut) {
  const Daemon daemon({}, kLimit);
  for (int round = 0; round < 3; ++round) {
    Flood(daemon);
    ExpectThreeGoodCalls(daemon);
  }
  EXPECT_LT(OpenDescriptors(daemon.pid()), kLimit);
}

}  // namespace
}  // namespace kiln::e2e
