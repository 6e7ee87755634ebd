#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/unix_socket.h"
#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

constexpr int kLimit = 80;
constexpr int kSilent = 200;

// Silent connections, as many as the daemon's backlog takes.
std::vector<FileDescriptor> OpenSilent(const Daemon& daemon) {
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < kSilent; ++i) {
    auto connection = client::ConnectUnix(daemon.folder() / "kilnd.sock",
                                          std::chrono::seconds(10));
    if (connection.ok()) silent.push_back(*std::move(connection));
  }
  EXPECT_GE(silent.size(), static_cast<size_t>(kLimit));
  return silent;
}

// Opens them and closes them again.
void Flood(const Daemon& daemon) { OpenSilent(daemon); }

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

// Prevents a refused client that reads "Broken pipe" and nothing else.
TEST(FloodTest, RefusedClientIsToldOfTheLimit) {
  const Daemon daemon({"--max-connections", std::to_string(kLimit)});
  const std::vector<FileDescriptor> silent = OpenSilent(daemon);
  absl::Status refused;
  EXPECT_TRUE(Eventually([&] {
    refused = Client::Connect(daemon.connect_options()).status();
    return absl::IsUnavailable(refused);
  }));
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("limit of connections (--max-connections"));
}

}  // namespace
}  // namespace kiln::e2e
