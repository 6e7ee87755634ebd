#include "server/compile_pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "jit/plan/errors.h"
#include "proto/file_descriptor.h"
#include "tests/server/captured_log.h"
#include "tests/server/waiting.h"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Clock = std::chrono::steady_clock;
using OutcomeAnswer = Answer<CompilePool::Outcome>;

constexpr char kRequestId[] = "0123456789abcdef";

// What WhenArchitecturesKnown calls.
class Architectures {
 public:
  std::function<void(const std::vector<int>&)> callback() {
    return [done = answer_.callback()](const std::vector<int>& known) {
      done(known);
    };
  }
  std::vector<int> Get() { return *answer_.Get(); }
  bool IsThere() const { return answer_.IsThere(); }

 private:
  Answer<std::vector<int>> answer_;
};

// A pool of fake workers, which do as a job's variant says.
class CompilePoolTest : public ::testing::Test {
 protected:
  CompilePoolTest() {
    options_.executable = KILN_FAKE_CHILD;
    options_.max_workers = 1;
  }

  void Start() {
    auto pool = CompilePool::Start(options_);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }

  static CompileRequest Request(const std::string& variant) {
    CompileRequest request;
    request.target = Target{"cpu", 0};
    request.variant = variant;
    return request;
  }

  uint64_t Submit(const std::string& variant, OutcomeAnswer* answer) {
    return pool_->Submit(Request(variant), kRequestId, answer->callback());
  }

  absl::StatusOr<CompilePool::Outcome> Compile(const std::string& variant) {
    OutcomeAnswer answer;
    Submit(variant, &answer);
    return answer.Get();
  }

  // Which worker answers now.
  std::string Worker() {
    const auto outcome = Compile("ok");
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? outcome->artifact : "";
  }

  bool Reaches(int workers) {
    return Eventually([&] { return pool_->counters().workers == workers; });
  }

  CompilePool::Options options_;
  std::unique_ptr<CompilePool> pool_;
};

TEST_F(CompilePoolTest, AnswersWithOneWarmWorker) {
  Start();
  const std::string worker = Worker();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Worker(), worker);
  EXPECT_EQ(pool_->counters().started, 1);
  EXPECT_EQ(pool_->counters().compiles, 21);
}

TEST_F(CompilePoolTest, RefusesAProgramThatIsNone) {
  options_.executable = "/nowhere/kilnd";
  EXPECT_TRUE(absl::IsInvalidArgument(CompilePool::Start(options_).status()));
}

TEST_F(CompilePoolTest, TellsWhatTheFirstWorkerKnows) {
  Start();
  Architectures early;
  pool_->WhenArchitecturesKnown(early.callback());
  EXPECT_THAT(early.Get(), ElementsAre(75, 90));
  Architectures late;
  pool_->WhenArchitecturesKnown(late.callback());
  EXPECT_TRUE(late.IsThere());
  EXPECT_THAT(late.Get(), ElementsAre(75, 90));
}

// Prevents a call that waits for a compiler that does not come.
TEST_F(CompilePoolTest, KnowsNothingOfAWorkerThatDoesNotComeUp) {
  options_.toolchain.library_path = "exit";
  Start();
  Architectures answer;
  pool_->WhenArchitecturesKnown(answer.callback());
  EXPECT_THAT(answer.Get(), IsEmpty());
}

TEST_F(CompilePoolTest, HandsStatusAndDetailOn) {
  Start();
  const auto outcome = Compile("refuse");
  EXPECT_TRUE(absl::IsInvalidArgument(outcome.status())) << outcome.status();
  EXPECT_EQ(DetailOf(outcome.status()).field, "ops[0]");
  EXPECT_EQ(pool_->counters().crashed, 0);
}

// Prevents that NVRTC reads options from the daemon's environment, or that a
// worker holds clients' sockets.
TEST_F(CompilePoolTest, GivesWorkersNothingButTheirSocket) {
  setenv("NVRTC_APPEND_FLAGS", "-G", 1);
  setenv("CUDA_CACHE_PATH", "/nowhere", 1);
  const FileDescriptor not_closed_on_exec(fcntl(STDERR_FILENO, F_DUPFD, 100));
  Start();
  const auto outcome = Compile("surroundings");
  unsetenv("NVRTC_APPEND_FLAGS");
  unsetenv("CUDA_CACHE_PATH");
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_THAT(outcome->artifact, Not(HasSubstr("NVRTC")));
  EXPECT_THAT(outcome->artifact, Not(HasSubstr("CUDA")));
  EXPECT_THAT(outcome->artifact, HasSubstr("cwd /\n"));
  EXPECT_THAT(outcome->artifact, HasSubstr("descriptors 4\n"));
  EXPECT_THAT(outcome->artifact, HasSubstr("group own"));
}

// Prevents that a hanging compile holds its caller or its worker for good.
TEST_F(CompilePoolTest, KillsAHangingWorkerAtTheHardDeadline) {
  options_.hard_deadline = milliseconds(300);
  Start();
  const std::string worker = Worker();
  const auto start = Clock::now();
  const auto outcome = Compile("hang");
  EXPECT_TRUE(absl::IsDeadlineExceeded(outcome.status())) << outcome.status();
  EXPECT_GE(Clock::now() - start, milliseconds(300));
  EXPECT_LT(Clock::now() - start, milliseconds(5'000));
  EXPECT_NE(Worker(), worker);
  EXPECT_EQ(pool_->counters().killed, 1);
  EXPECT_EQ(pool_->counters().started, 2);
}

// Prevents that one bad compile costs another caller's.
TEST_F(CompilePoolTest, TriesTheJobOfADeadWorkerOnceMore) {
  const std::string mark =
      ::testing::TempDir() + "/kiln_crash_once_" + std::to_string(getpid());
  std::filesystem::remove(mark);
  Start();
  const auto outcome = Compile("crash once " + mark);
  std::filesystem::remove(mark);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(pool_->counters().crashed, 1);
  EXPECT_EQ(pool_->counters().compiles, 2);
}

// Prevents a line of the log of which nobody can tell whose request it met.
TEST_F(CompilePoolTest, DeathOfAWorkerIsLoggedWithTheRequest) {
  const CapturedLog log;
  Start();
  EXPECT_FALSE(Compile("crash").ok());
  pool_.reset();
  EXPECT_THAT(log.text(), HasSubstr("request=" + std::string(kRequestId) +
                                    " A compile worker died"));
}

// Each is a way in which a worker can break; all must be answered, with the
// cause, and none may keep the pool from serving.
class CompilePoolDeathTest : public CompilePoolTest,
                             public ::testing::WithParamInterface<
                                 std::pair<const char*, const char*>> {};

TEST_P(CompilePoolDeathTest, IsAnsweredAfterTheSecondDeath) {
  Start();
  const auto [variant, cause] = GetParam();
  const auto outcome = Compile(variant);
  EXPECT_TRUE(absl::IsUnavailable(outcome.status())) << outcome.status();
  EXPECT_THAT(std::string(outcome.status().message()), HasSubstr(cause));
  EXPECT_NE(Worker(), "");
  EXPECT_EQ(pool_->counters().crashed, 2);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, CompilePoolDeathTest,
    ::testing::Values(std::make_pair("crash", "signal 11"),
                      std::make_pair("exit", "exit status 3"),
                      std::make_pair("close", "signal 9"),
                      std::make_pair("garbage", "breaks the message format"),
                      std::make_pair("no message", "bytes that are no message"),
                      std::make_pair("half a message", "signal 6"),
                      std::make_pair("wrong id", "an answer to no question")));

TEST_F(CompilePoolTest, CancelsAQueuedJob) {
  options_.hard_deadline = milliseconds(2'000);
  Start();
  OutcomeAnswer running;
  OutcomeAnswer queued;
  const uint64_t first = Submit("hang", &running);
  pool_->Cancel(Submit("ok", &queued));
  EXPECT_TRUE(absl::IsCancelled(queued.Get().status()));
  EXPECT_FALSE(running.IsThere());
  pool_->Cancel(first);
  EXPECT_TRUE(absl::IsCancelled(running.Get().status()));
}

// Prevents that compiles nobody waits for keep the cores busy.
TEST_F(CompilePoolTest, KillsTheWorkerOfARunningJobThatIsCancelled) {
  Start();
  const std::string worker = Worker();
  OutcomeAnswer running;
  const uint64_t job = Submit("hang", &running);
  ASSERT_TRUE(Eventually([&] { return pool_->counters().compiles == 2; }));
  pool_->Cancel(job);
  EXPECT_TRUE(absl::IsCancelled(running.Get().status()));
  EXPECT_NE(Worker(), worker);
  EXPECT_EQ(pool_->counters().killed, 1);
  pool_->Cancel(job);
  pool_->Cancel(987654321);
  Worker();
}

TEST_F(CompilePoolTest, RefusesMoreThanTheQueueHolds) {
  options_.max_queued = 3;
  Start();
  Worker();
  std::vector<OutcomeAnswer> answers(6);
  for (OutcomeAnswer& answer : answers) Submit("delay 200", &answer);
  int refused = 0;
  for (OutcomeAnswer& answer : answers) {
    const absl::Status status = answer.Get().status();
    refused += absl::IsResourceExhausted(status) ? 1 : 0;
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
  }
  EXPECT_EQ(refused, 2);  // one runs, three wait
  EXPECT_EQ(pool_->counters().queued, 0);
}

TEST_F(CompilePoolTest, GrowsWithTheQueueAndShrinksWhenQuiet) {
  options_.max_workers = 3;
  options_.idle_quiet = milliseconds(300);
  Start();
  Worker();
  EXPECT_EQ(pool_->counters().workers, 1);
  std::vector<OutcomeAnswer> answers(12);
  for (OutcomeAnswer& answer : answers) Submit("delay 150", &answer);
  EXPECT_TRUE(Reaches(3));
  std::set<std::string> workers;
  for (OutcomeAnswer& answer : answers) workers.insert(answer.Get()->artifact);
  EXPECT_EQ(workers.size(), 3u);
  EXPECT_TRUE(Reaches(1));
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_EQ(pool_->counters().workers, 1);
  EXPECT_EQ(pool_->counters().recycled, 2);
}

TEST_F(CompilePoolTest, RecyclesAWorkerAfter256Jobs) {
  Start();
  std::set<std::string> workers;
  for (int i = 0; i < 257; ++i) workers.insert(Worker());
  EXPECT_EQ(workers.size(), 2u);
  EXPECT_EQ(pool_->counters().recycled, 1);
}

TEST_F(CompilePoolTest, RecyclesAWorkerThatGaveUpOrGrew) {
  Start();
  const std::string first = Worker();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Compile("give up").status()));
  const std::string second = Worker();
  EXPECT_TRUE(Compile("grow").ok());
  const std::string third = Worker();
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_EQ(pool_->counters().recycled, 2);
  EXPECT_EQ(pool_->counters().crashed, 0);
}

// Prevents that callers wait for ever on a host where workers cannot start,
// and that the daemon spends itself on starting them.
TEST_F(CompilePoolTest, SaysSoWhenNoWorkerComesUp) {
  options_.toolchain.library_path = "crash";
  Start();
  const auto outcome = Compile("ok");
  EXPECT_TRUE(absl::IsUnavailable(outcome.status())) << outcome.status();
  EXPECT_THAT(std::string(outcome.status().message()), HasSubstr("signal 11"));
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LE(pool_->counters().started, 4);
}

TEST_F(CompilePoolTest, KillsAWorkerThatHangsBeforeItIsReady) {
  options_.toolchain.library_path = "hang";
  options_.start_deadline = milliseconds(150);
  Start();
  const auto outcome = Compile("ok");
  EXPECT_TRUE(absl::IsUnavailable(outcome.status())) << outcome.status();
  EXPECT_THAT(std::string(outcome.status().message()),
              HasSubstr("not ready after 150 ms"));
}

TEST_F(CompilePoolTest, AnswersWhatIsLeftWhenItEnds) {
  Start();
  std::vector<OutcomeAnswer> answers(5);
  for (OutcomeAnswer& answer : answers) Submit("hang", &answer);
  pool_.reset();
  for (OutcomeAnswer& answer : answers) {
    ASSERT_TRUE(answer.IsThere());
    EXPECT_TRUE(absl::IsUnavailable(answer.Get().status()));
  }
}

// Prevents that answers get lost or doubled when everything goes wrong at
// once. The seed is fixed; what is random is the machine's timing.
TEST_F(CompilePoolTest, AnswersEveryJobOnceUnderAnyMixture) {
  options_.max_workers = 3;
  options_.hard_deadline = milliseconds(200);
  Start();
  const std::vector<std::string> variants = {
      "ok", "crash", "hang", "ok", "garbage", "delay 20", "refuse", "give up"};
  std::vector<OutcomeAnswer> answers(80);
  for (size_t i = 0; i < answers.size(); ++i) {
    const uint64_t id = Submit(variants[i % variants.size()], &answers[i]);
    if (i % 7 == 3) pool_->Cancel(id);
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    const absl::Status status = answers[i].Get().status();
    EXPECT_FALSE(absl::IsUnknown(status)) << i << ": " << status;
    const bool fine = i % 8 == 0 && i % 7 != 3;
    EXPECT_TRUE(!fine || status.ok()) << i << ": " << status;
  }
  EXPECT_EQ(pool_->counters().queued, 0);
}

}  // namespace
}  // namespace kiln
