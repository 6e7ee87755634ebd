#include "server/executor_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cache/mutex.h"
#include "proto/artifact_converter.h"
#include "tests/server/cpu_artifact.h"
#include "tests/server/sealed_memory.h"
#include "tests/server/waiting.h"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

int OpenDescriptors(int pid) {
  const std::filesystem::directory_iterator folder("/proc/" +
                                                   std::to_string(pid) + "/fd");
  return static_cast<int>(std::distance(begin(folder), end(folder)));
}

// The real executor of the device cpu.
class ExecutorProcessTest : public ::testing::Test {
 protected:
  ExecutorProcessTest() {
    options_.executable = KILN_PROCESS_TEST_HOST;
    options_.device = "cpu";
    options_.on_death = [this](const std::string&) { ++deaths_; };
    artifact_ = std::make_shared<const std::string>(
        SerializeArtifact(CpuArtifact(kReluPlan)));
    memory_.Write(0, {-1, 2, -3, 4});
  }

  void Create() { executor_ = ExecutorProcess::Create(options_); }

  absl::StatusOr<DeviceDescription> Describe() {
    Answer<DeviceDescription> answer;
    executor_->Describe(answer.callback());
    return answer.Get();
  }

  absl::StatusOr<OpenedMemory> Open(MemorySource source) {
    Answer<OpenedMemory> answer;
    executor_->Open(std::move(source), answer.callback());
    return answer.Get();
  }

  void Execute(uint64_t memory, Answer<int64_t>* answer) {
    ExecuteJob job;
    job.session = "session";
    job.slots = {{memory, 0}, {memory, 1024}};
    executor_->Execute("key", artifact_, job, answer->callback());
  }

  absl::Status Execute(uint64_t memory) {
    Answer<int64_t> answer;
    Execute(memory, &answer);
    return answer.Get().status();
  }

  void KillAndAwaitDeath() {
    const int before = deaths_;
    kill(executor_->pid(), SIGKILL);
    ASSERT_TRUE(Eventually([&] { return deaths_ > before; }));
  }

  ExecutorProcess::Options options_;
  std::atomic<int> deaths_{0};
  std::shared_ptr<const std::string> artifact_;
  SealedMemory memory_{4096};
  std::unique_ptr<ExecutorProcess> executor_;
};

TEST_F(ExecutorProcessTest, StartsWhenItIsUsed) {
  Create();
  EXPECT_EQ(executor_->state(), "idle");
  EXPECT_EQ(executor_->pid(), 0);
  const auto description = Describe();
  ASSERT_TRUE(description.ok()) << description.status();
  EXPECT_EQ(description->device, "cpu");
  EXPECT_TRUE(description->target.is_cpu());
  EXPECT_EQ(executor_->state(), "ready");
  EXPECT_GT(executor_->pid(), 0);
}

TEST_F(ExecutorProcessTest, ExecutesOnSharedMemory) {
  Create();
  const auto opened = Open(memory_.Share());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->size_bytes, 4096);
  for (int i = 0; i < 3; ++i) {
    memory_.Write(1024, {7, 7, 7, 7});
    const absl::Status status = Execute(opened->id);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(memory_.Read(1024, 4), ElementsAre(0, 2, 0, 4));
  }
}

TEST_F(ExecutorProcessTest, AnswersManyCallsAtOnce) {
  Create();
  const uint64_t id = Open(memory_.Share())->id;
  std::vector<Answer<int64_t>> answers(500);
  for (auto& answer : answers) Execute(id, &answer);
  for (auto& answer : answers) EXPECT_TRUE(answer.Get().ok());
}

TEST_F(ExecutorProcessTest, ClosesMemory) {
  Create();
  const uint64_t id = Open(memory_.Share())->id;
  Answer<int> closed;
  executor_->Close(id, [done = closed.callback()] { done(0); });
  EXPECT_TRUE(closed.Get().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Execute(id)));
}

TEST_F(ExecutorProcessTest, ClosesAndEndsSessionsWithoutAProcess) {
  Create();
  Answer<int> closed;
  executor_->Close(17, [done = closed.callback()] { done(0); });
  EXPECT_TRUE(closed.Get().ok());
  executor_->EndSession("session");
  EXPECT_EQ(executor_->pid(), 0);
}

TEST_F(ExecutorProcessTest, SaysWhyADeviceIsNotThere) {
  options_.device = "abacus";
  Create();
  const auto description = Describe();
  EXPECT_TRUE(absl::IsInvalidArgument(description.status()));
  EXPECT_THAT(executor_->state(), HasSubstr("unhealthy: There is no such"));
  EXPECT_EQ(deaths_, 0);
}

// Prevents that memory that its client can cut off reaches the evaluator, and
// that refusals use up descriptors on either side.
TEST_F(ExecutorProcessTest, RefusesUnsealedMemoryAndKeepsNoDescriptor) {
  Create();
  ASSERT_TRUE(Describe().ok());
  const int ours = OpenDescriptors(getpid());
  const int theirs = OpenDescriptors(executor_->pid());
  for (int i = 0; i < 1'000; ++i) {
    const auto opened = Open(SealedMemory(4096, 0).Share());
    ASSERT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
  }
  EXPECT_EQ(OpenDescriptors(getpid()), ours);
  EXPECT_EQ(OpenDescriptors(executor_->pid()), theirs);
}

// Prevents that a call is lost, or answered as done, when the executor dies.
TEST_F(ExecutorProcessTest, AbortsCallsUnderWayWhenKilledAndWorksAgain) {
  Create();
  const uint64_t id = Open(memory_.Share())->id;
  kill(executor_->pid(), SIGSTOP);
  Answer<int64_t> first;
  Answer<int64_t> second;
  Execute(id, &first);
  Execute(id, &second);
  // An id of no process is answered at once, after the two were sent.
  EXPECT_TRUE(absl::IsAborted(Execute(1)));
  KillAndAwaitDeath();
  for (const absl::Status& status :
       {first.Get().status(), second.Get().status()}) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("signal 9"));
  }
  EXPECT_EQ(executor_->state(), "idle");

  const auto start = Clock::now();
  const auto opened = Open(memory_.Share());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(Execute(opened->id).ok());
  EXPECT_LT(Clock::now() - start, milliseconds(2'000));
  EXPECT_EQ(deaths_, 1);
}

// Prevents that an id of a dead process names another client's memory in the
// next one, where ids start anew.
TEST_F(ExecutorProcessTest, NeverTakesAnIdOfADeadProcess) {
  Create();
  const uint64_t old_id = Open(memory_.Share())->id;
  KillAndAwaitDeath();
  SealedMemory other(4096);
  const uint64_t new_id = Open(other.Share())->id;
  EXPECT_NE(old_id, new_id);
  EXPECT_TRUE(absl::IsAborted(Execute(old_id)));
  EXPECT_TRUE(absl::IsAborted(Execute(1)));
  EXPECT_THAT(other.Read(1024, 4), ElementsAre(0, 0, 0, 0));
  Answer<int> closed;
  executor_->Close(old_id, [done = closed.callback()] { done(0); });
  EXPECT_TRUE(closed.Get().ok());
  EXPECT_TRUE(Execute(new_id).ok());
}

// Prevents that an endless kernel holds the device for good.
TEST_F(ExecutorProcessTest, KillsTheProcessAtTheDeadline) {
  options_.execute_deadline = milliseconds(300);
  Create();
  const uint64_t id = Open(memory_.Share())->id;
  kill(executor_->pid(), SIGSTOP);
  Answer<int64_t> overdue;
  Answer<int64_t> behind;
  Execute(id, &overdue);
  Execute(id, &behind);
  EXPECT_TRUE(absl::IsDeadlineExceeded(overdue.Get().status()));
  EXPECT_TRUE(absl::IsAborted(behind.Get().status()));
  EXPECT_EQ(deaths_, 1);
  EXPECT_TRUE(Execute(Open(memory_.Share())->id).ok());
}

// Prevents that one client's plan takes everybody's buffers again and again.
TEST_F(ExecutorProcessTest, IsPausedAfterThreeDeathsInAMinute) {
  options_.unhealthy_period = milliseconds(1'000);
  Create();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Describe().ok());
    KillAndAwaitDeath();
  }
  EXPECT_THAT(executor_->state(), HasSubstr("unhealthy: signal 9"));
  const auto opened = Open(memory_.Share());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(Execute(opened->id)));
  std::this_thread::sleep_for(milliseconds(1'100));
  EXPECT_EQ(executor_->state(), "ready");
  EXPECT_TRUE(Execute(opened->id).ok());
}

TEST_F(ExecutorProcessTest, AnswersWhatIsLeftWhenItEnds) {
  Create();
  const uint64_t id = Open(memory_.Share())->id;
  const int pid = executor_->pid();
  kill(pid, SIGSTOP);
  Answer<int64_t> answer;
  Execute(id, &answer);
  executor_.reset();
  ASSERT_TRUE(answer.IsThere());
  EXPECT_TRUE(absl::IsUnavailable(answer.Get().status()));
  EXPECT_NE(kill(pid, 0), 0);
}

// Prevents that answers get lost or doubled, whenever the process dies.
TEST_F(ExecutorProcessTest, AnswersEveryCallOnceWhileItIsKilledAgainAndAgain) {
  options_.max_deaths = 1'000;
  Create();
  for (int round = 0; round < 30; ++round) {
    const auto opened = Open(memory_.Share());
    ASSERT_TRUE(opened.ok()) << opened.status();
    std::vector<Answer<int64_t>> answers(20);
    for (auto& answer : answers) Execute(opened->id, &answer);
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    KillAndAwaitDeath();
    for (auto& answer : answers) {
      const absl::Status status = answer.Get().status();
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
    }
  }
}

// Executors that misbehave as their device's name says.
class FakeExecutorTest : public ExecutorProcessTest {
 protected:
  void CreateFake(const std::string& device) {
    options_.executable = KILN_FAKE_CHILD;
    options_.device = device;
    Create();
  }

  absl::StatusOr<int64_t> ExecuteNothing() {
    Answer<int64_t> answer;
    executor_->Execute("key", artifact_, ExecuteJob(), answer.callback());
    return answer.Get();
  }
};

TEST_F(FakeExecutorTest, EndsWithAPoisonedDevice) {
  CreateFake("poisoned");
  const absl::Status status = ExecuteNothing().status();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("illegal address"));
  EXPECT_EQ(deaths_, 1);
  EXPECT_EQ(executor_->state(), "idle");
}

// The fake holds no artifact, so each but the first call asks for it.
TEST_F(FakeExecutorTest, SendsAnArtifactAgainWhenAsked) {
  CreateFake("forgets");
  for (int i = 0; i < 3; ++i) {
    const auto executed = ExecuteNothing();
    ASSERT_TRUE(executed.ok()) << executed.status();
    EXPECT_EQ(*executed, static_cast<int64_t>(artifact_->size()));
  }
}

TEST_F(FakeExecutorTest, DoesNotSendAnArtifactForEver) {
  CreateFake("always asks");
  EXPECT_TRUE(absl::IsInternal(ExecuteNothing().status()));
}

// Prevents that calls pile up on a device whose driver does not let go of a
// killed process, and that such a device is said to be fine. A signal that ends
// nothing stands in for SIGKILL.
TEST_F(FakeExecutorTest, IsOutOfUseWhileAKilledProcessDoesNotEnd) {
  Mutex mutex;
  std::vector<std::string> problems;
  options_.on_health = [&](const std::string& problem) {
    MutexLock lock(mutex);
    problems.push_back(problem);
  };
  options_.kill_signal = SIGURG;
  options_.kill_limit = options_.execute_deadline = milliseconds(200);
  CreateFake("wedged");
  ASSERT_TRUE(Describe().ok());
  const int pid = executor_->pid();
  kill(pid, SIGSTOP);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ExecuteNothing().status()));

  const std::string problem = "its process " + std::to_string(pid) +
                              " does not end, 200 ms after SIGKILL";
  ASSERT_TRUE(Eventually(
      [&] { return executor_->state() == "unhealthy: " + problem; }));
  const absl::Status refused = Describe().status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(problem));
  EXPECT_TRUE(absl::IsUnavailable(ExecuteNothing().status()));

  kill(pid, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return executor_->state() == "idle"; }));
  EXPECT_TRUE(Describe().ok());
  kill(executor_->pid(), SIGKILL);
  executor_.reset();
  EXPECT_THAT(problems, ElementsAre(problem, ""));
}

// Prevents that work and its figures silently move to another GPU when a GPU
// drops off the bus and the ordinals of the others shift.
TEST_F(FakeExecutorTest, IsOutOfUseWhileItsNameMeansAnotherDevice) {
  const std::string path =
      ::testing::TempDir() + "/kiln_uuid_" + std::to_string(getpid());
  const auto be = [&](const char* uuid) { std::ofstream(path) << uuid; };
  be("GPU-a");
  CreateFake("uuid in " + path);
  ASSERT_TRUE(Describe().ok());
  KillAndAwaitDeath();
  ASSERT_TRUE(Describe().ok());
  KillAndAwaitDeath();

  be("GPU-b");
  for (const absl::Status& status :
       {Describe().status(), ExecuteNothing().status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("another GPU (now GPU-b, before GPU-a)"));
  }
  EXPECT_THAT(executor_->state(), HasSubstr("unhealthy: The name uuid in"));
  EXPECT_EQ(deaths_, 2);

  be("GPU-a");
  EXPECT_TRUE(Eventually([&] { return Describe().ok(); }));
  EXPECT_EQ(executor_->state(), "ready");
  executor_.reset();
  std::filesystem::remove(path);
}

TEST_F(FakeExecutorTest, AnswersWhenTheProcessDiesBeforeItIsReady) {
  for (const char* way : {"crash", "garbage", "half a message", "close"}) {
    CreateFake(way);
    const auto described = Describe();
    EXPECT_TRUE(absl::IsAborted(described.status())) << described.status();
  }
}

}  // namespace
}  // namespace kiln
