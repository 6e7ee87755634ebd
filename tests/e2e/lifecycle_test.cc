#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using ::testing::HasSubstr;

std::map<std::string, std::string> PrivateEnvironment(const TempDir& dir) {
  return {{"XDG_RUNTIME_DIR", dir.path()},
          {"XDG_CACHE_HOME", dir / "cache"},
          {"XDG_STATE_HOME", dir / "state"},
          {"KILN_SOCKET", dir / "kilnd.sock"},
          {"KILN_CACHE_DIR", dir / "cache"}};
}

pid_t LockHolder(const TempDir& dir) {
  return std::atoi(ReadWhole(dir / "kilnd.sock.lock").c_str());
}

ConnectOptions OptionsIn(const TempDir& dir) {
  ConnectOptions options;
  options.socket = dir / "kilnd.sock";
  options.kilnd = Program("kilnd");
  options.log_file = dir / "kilnd.log";
  return options;
}

// Prevents two daemons on one socket, and clients that lose their race.
TEST(LifecycleTest, ClientsThatStartAtOnceShareOneDaemon) {
  constexpr int kClients = 8;
  const TempDir dir;
  ProcessOptions options;
  options.environment = PrivateEnvironment(dir);
  std::vector<CommandResult> results(kClients);
  std::vector<std::thread> threads;
  for (CommandResult& result : results) {
    threads.emplace_back([&result, &options] {
      result = RunCommand({Program("kiln"), "info", "--json"}, options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<int64_t> pids;
  for (const CommandResult& result : results) {
    ASSERT_EQ(result.status, 0) << result.err;
    pids.insert(nlohmann::json::parse(result.out)["pid"].get<int64_t>());
  }
  EXPECT_EQ(pids.size(), 1u);
  const pid_t pid = LockHolder(dir);
  EXPECT_EQ(*pids.begin(), pid);
  kill(pid, SIGTERM);
  EXPECT_TRUE(Eventually([pid] { return !IsAlive(pid); }));
}

TEST(LifecycleTest, FailureToStartShowsTheDaemonsLog) {
  const TempDir dir;
  ConnectOptions options = OptionsIn(dir);
  options.kilnd_args = {"--no-such-option"};
  const absl::Status status = Client::Connect(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--no-such-option"));
}

// Prevents a hunt for which of several limits has passed.
TEST(LifecycleTest, ADaemonThatHangsIsNamedWithTheCallAndItsLimit) {
  const TempDir dir;
  const FileDescriptor silent = ListenInSilence(dir / "kilnd.sock", 8);
  ConnectOptions options;
  options.socket = dir / "kilnd.sock";
  options.start_timeout = std::chrono::milliseconds(200);
  const absl::Status status = Client::Connect(options).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(status.message(),
            "kilnd on " + options.socket +
                " does not answer the GetServerInfoRequest before the call's "
                "deadline (200 ms)");
}

// Prevents a client that waits for ever for a daemon that hangs, and another
// daemon beside it.
TEST(LifecycleTest, ADaemonThatAcceptsNobodyIsNamedWithTheTimeWaited) {
  const TempDir dir;
  ConnectOptions options = OptionsIn(dir);
  options.start_timeout = std::chrono::milliseconds(200);
  const FileDescriptor silent = ListenInSilence(options.socket, 0);
  // The first leaves the queue full, which gRPC finds so; then it is so.
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = Client::Connect(options).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_EQ(status.message(),
              "kilnd on " + options.socket +
                  " does not accept connections: its queue stays full (waited "
                  "200 ms)");
  }
  EXPECT_FALSE(std::filesystem::exists(options.log_file));
}

TEST(LifecycleTest, LeavesWhenIdleAndNotBefore) {
  Daemon daemon({"--idle-exit", "1s"});
  {
    Client client = daemon.Connect();
    EXPECT_EQ(daemon.process().Wait(2'000), std::nullopt);
    EXPECT_TRUE(client.GetServerInfo().ok());
  }
  EXPECT_EQ(daemon.process().Wait(20'000), 0);
  EXPECT_FALSE(std::filesystem::exists(daemon.folder() / "kilnd.sock"));
}

// Prevents a stop from cutting off calls that would finish.
TEST(LifecycleTest, SigtermLetsCallsFinishAndTellsSessions) {
  Daemon daemon;
  Client client = daemon.Connect();
  std::atomic<bool> told = false;
  const auto session = client.OpenSession([&told](const SessionEvent& event) {
    if (event.kind == SessionEvent::Kind::kDraining) told = true;
  });
  ASSERT_TRUE(session.ok());
  CompileOptions options;
  options.target = "sm_80/108";
  std::thread stopper([&daemon] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    daemon.process().Signal(SIGTERM);
  });
  const auto compiled = client.Compile(SmallPlan(1), options);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  stopper.join();
  EXPECT_TRUE(Eventually([&] { return told.load(); }));
  const auto late = client.Compile(SmallPlan(2), options);
  EXPECT_TRUE(absl::IsUnavailable(late.status())) << late.status().ToString();
  EXPECT_EQ(daemon.process().Wait(40'000), 0);
}

TEST(LifecycleTest, ASecondDaemonOnTheSocketGivesUp) {
  const Daemon daemon;
  const CommandResult second =
      RunCommand({Program("kilnd"), "--socket", daemon.folder() / "kilnd.sock",
                  "--cache-dir", daemon.folder() / "cache2"});
  EXPECT_NE(second.status, 0);
  EXPECT_THAT(second.err, HasSubstr("Another kilnd"));
  EXPECT_TRUE(daemon.Connect().GetServerInfo().ok());
}

}  // namespace
}  // namespace kiln::e2e
