#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <random>
#include <thread>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

constexpr int kLoops = 50;

void SleepMs(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// Whether a new client is served from compile to result.
bool Serves(const Daemon& daemon, int number) {
  Client client = daemon.Connect();
  const auto compiled = client.Compile(SmallPlan(number));
  absl::StatusOr<Session> session = client.OpenSession();
  if (!compiled.ok() || !session.ok()) return false;
  const auto x = session->CreateBuffer(256);
  const auto y = session->CreateBuffer(256);
  if (!x.ok() || !y.ok()) return false;
  x->As<float>()[0] = 2.0f;
  const auto executed =
      session->Execute(*compiled, Bindings().Input(0, *x).Output(0, *y));
  const float wanted = 2.0f * (static_cast<float>(number) + 0.5f);
  return executed.ok() && y->As<float>()[0] == wanted;
}

// Prevents leaks of what dead clients leave: connections, sessions, shared
// memory in front and executor.
TEST(KillTest, ClientsKilledAtAnyPointLeaveNothingBehind) {
  const Daemon daemon;
  ASSERT_TRUE(Serves(daemon, 1));
  const pid_t executor = ChildrenOf(daemon.pid(), "--role executor").at(0);
  SleepMs(200);
  const int front_before = OpenDescriptors(daemon.pid());
  const int executor_before = OpenDescriptors(executor);
  std::mt19937 random(20240);
  for (int loop = 0; loop < kLoops; ++loop) {
    ProcessOptions options;
    options.output = daemon.folder() / ("busy" + std::to_string(loop));
    Process client({Program("busy_client"), daemon.folder() / "kilnd.sock",
                    std::to_string(1000 * (loop + 2))},
                   options);
    ASSERT_TRUE(Eventually([&] { return !ReadWhole(options.output).empty(); }));
    SleepMs(static_cast<int>(random() % 40));
    client.Signal(SIGKILL);
    EXPECT_EQ(client.Wait(), 128 + SIGKILL);
  }
  EXPECT_TRUE(Serves(daemon, 2));
  EXPECT_EQ(ChildrenOf(daemon.pid(), "--role executor").at(0), executor);
  EXPECT_TRUE(Eventually([&] {
    return OpenDescriptors(daemon.pid()) <= front_before &&
           OpenDescriptors(executor) <= executor_before;
  })) << "front "
      << front_before << " -> " << OpenDescriptors(daemon.pid())
      << ", executor " << executor_before << " -> "
      << OpenDescriptors(executor);
}

// Prevents a dead worker from losing or failing a request. One death each: a
// request that kills two workers is answered with an error.
TEST(KillTest, CompilesSurviveTheDeathOfAWorker) {
  const Daemon daemon;
  Client client = daemon.Connect();
  CompileOptions options;
  options.target = "sm_80/108";
  std::mt19937 random(20241);
  for (int loop = 0; loop < kLoops; ++loop) {
    pid_t victim = 0;
    std::thread killer([&, delay_ms = static_cast<int>(random() % 60)] {
      SleepMs(delay_ms);
      const auto workers = ChildrenOf(daemon.pid(), "--role worker");
      if (workers.empty()) return;
      victim = workers.front();
      kill(victim, SIGKILL);
    });
    const auto compiled = client.Compile(SmallPlan(loop), options);
    killer.join();
    // Until the front has seen the death, it may hand out the next request.
    EXPECT_TRUE(Eventually([victim] {
      return victim == 0 ||
             !std::filesystem::exists("/proc/" + std::to_string(victim));
    }));
    EXPECT_TRUE(compiled.ok()) << loop << ": " << compiled.status().ToString();
  }
}

// Kills the executor of a daemon while it executes, or just before or after.
void KillExecutorOnce(const Daemon& daemon, int number, int delay_ms) {
  Client client = daemon.Connect();
  const auto compiled = client.Compile(SmallPlan(1, 1 << 20));
  ASSERT_TRUE(compiled.ok());
  std::atomic<int> restarts = 0;
  absl::StatusOr<Session> session =
      client.OpenSession([&restarts](const SessionEvent& event) {
        if (event.kind == SessionEvent::Kind::kExecutorRestarted) ++restarts;
      });
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const auto x = session->CreateBuffer(4 << 20);
  const auto y = session->CreateBuffer(4 << 20);
  ASSERT_TRUE(x.ok() && y.ok()) << x.status().ToString();
  x->As<float>()[0] = static_cast<float>(number);
  std::thread killer([&] {
    SleepMs(delay_ms);
    for (const pid_t pid : ChildrenOf(daemon.pid(), "--role executor")) {
      kill(pid, SIGKILL);
    }
  });
  const auto executed =
      session->Execute(*compiled, Bindings().Input(0, *x).Output(0, *y));
  killer.join();
  if (executed.ok()) {
    EXPECT_EQ(y->As<float>()[0], 1.5f * static_cast<float>(number));
  } else {
    EXPECT_TRUE(absl::IsAborted(executed.status()))
        << executed.status().ToString();
  }
  EXPECT_TRUE(Eventually([&] { return restarts > 0; }));
}

// Prevents success without a result, and a device that stays away. A device
// is paused at its third death in a row, so each daemon sees two.
TEST(KillTest, DeathOfTheExecutorIsToldAndOvercome) {
  std::mt19937 random(20242);
  for (int loop = 0; loop < kLoops; loop += 2) {
    const Daemon daemon;
    for (int death = 0; death < 2; ++death) {
      KillExecutorOnce(daemon, loop + death, static_cast<int>(random() % 20));
      EXPECT_TRUE(Serves(daemon, 2)) << loop;
    }
  }
}

// Prevents a device that kills each of its executors from doing so for ever.
TEST(KillTest, ExecutorThatDiesAgainAndAgainIsPausedAndDoctorSaysSo) {
  const Daemon daemon;
  for (int death = 0; death < 3; ++death) {
    ASSERT_TRUE(Serves(daemon, 1));
    const pid_t executor = ChildrenOf(daemon.pid(), "--role executor").at(0);
    kill(executor, SIGKILL);
    ASSERT_TRUE(Eventually([executor] { return !IsAlive(executor); }));
    SleepMs(50);
  }
  EXPECT_FALSE(Serves(daemon, 1));
  const CommandResult doctor = daemon.Kiln({"doctor"});
  EXPECT_EQ(doctor.status, 1) << doctor.out;
  EXPECT_NE(doctor.out.find("unhealthy"), std::string::npos) << doctor.out;
}

// Prevents torn entries, orphans, and a socket that the dead one blocks.
TEST(KillTest, FrontKilledAtAnyPointComesBackWithItsCache) {
  Daemon daemon;
  CompileOptions options;
  options.target = "sm_80/108";
  std::mt19937 random(20243);
  for (int loop = 0; loop < kLoops; ++loop) {
    std::vector<pid_t> children;
    int stored = 0;
    {
      Client client = daemon.Connect();
      std::thread killer([&, delay_ms = static_cast<int>(random() % 150)] {
        SleepMs(delay_ms);
        children = ChildrenOf(daemon.pid(), "--role");
        daemon.process().Signal(SIGKILL);
      });
      while (client.Compile(SmallPlan(loop * 100 + stored), options).ok()) {
        ++stored;
      }
      killer.join();
    }
    EXPECT_EQ(daemon.process().Wait(), 128 + SIGKILL);
    EXPECT_TRUE(Eventually([&] {
      return std::none_of(children.begin(), children.end(), IsAlive);
    })) << "orphans";
    daemon.Start();
    Client client = daemon.Connect();
    options.hit_only = true;
    for (int i = 0; i < stored; ++i) {
      const auto hit = client.Compile(SmallPlan(loop * 100 + i), options);
      EXPECT_TRUE(hit.ok()) << loop << ": " << hit.status().ToString();
    }
    options.hit_only = false;
  }
  EXPECT_EQ(daemon.Kiln({"cache", "verify"}).status, 0);
}

}  // namespace
}  // namespace kiln::e2e
