#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "jit/compile/toolchain.h"
#include "jit/plan/errors.h"
#include "proto/artifact_converter.h"
#include "server/compile_pool.h"
#include "tests/server/cpu_artifact.h"
#include "tests/server/waiting.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

// A pool of real workers.
class CompileWorkerTest : public ::testing::Test {
 protected:
  void Start(const Toolchain& toolchain) {
    CompilePool::Options options;
    options.executable = KILN_PROCESS_TEST_HOST;
    options.toolchain = toolchain;
    auto pool = CompilePool::Start(options);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }

  void StartWithNvrtc() {
    const auto toolchain = FindToolchain("", "");
    ASSERT_TRUE(toolchain.ok()) << toolchain.status();
    toolchain_ = *toolchain;
    Start(toolchain_);
  }

  absl::StatusOr<CompilePool::Outcome> Compile(const Target& target,
                                               const std::string& toolchain) {
    CompileRequest request;
    request.plan = CanonicalOf(kReluPlan);
    request.target = target;
    request.toolchain = toolchain;
    Answer<CompilePool::Outcome> answer;
    pool_->Submit(request, "", answer.callback());
    return answer.Get();
  }

  static constexpr int kSms = 108;
  Toolchain toolchain_;
  std::unique_ptr<CompilePool> pool_;
};

TEST_F(CompileWorkerTest, CompilesForAGpuInTheSandbox) {
  StartWithNvrtc();
  const auto outcome = Compile(Target{"sm_80", kSms}, toolchain_.id);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const auto artifact = ParseArtifact(outcome->artifact);
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  ASSERT_FALSE(artifact->modules.empty());
  EXPECT_THAT(artifact->modules[0].cubin.substr(0, 4), "\177ELF");
  EXPECT_GT(outcome->nvrtc_us, 0);
  EXPECT_EQ(pool_->counters().crashed, 0);
}

TEST_F(CompileWorkerTest, GivesTheSameBytesInAnyProcess) {
  StartWithNvrtc();
  const auto first = Compile(Target{"sm_80", kSms}, toolchain_.id);
  StartWithNvrtc();
  const auto second = Compile(Target{"sm_80", kSms}, toolchain_.id);
  ASSERT_TRUE(first.ok() && second.ok()) << second.status();
  EXPECT_EQ(first->artifact, second->artifact);
}

TEST_F(CompileWorkerTest, CompilesForTheCpuWithoutNvrtc) {
  Start(Toolchain());
  const auto outcome = Compile(Target{"cpu", 0}, "");
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(ParseArtifact(outcome->artifact)->target.is_cpu());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Compile(Target{"sm_80", kSms}, "").status()));
}

// Prevents that the workers of a large daemon are recycled after each job: the
// kernel counts a child's peak from before exec.
TEST_F(CompileWorkerTest, IsNotRecycledForTheSizeOfItsFront) {
  const std::vector<char> large(size_t{1100} << 20, 'x');
  Start(Toolchain());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Compile(Target{"cpu", 0}, "").ok()) << large[i];
  }
  EXPECT_EQ(pool_->counters().recycled, 0);
  EXPECT_EQ(pool_->counters().started, 1);
}

// Prevents that code of a new compiler is stored under the old one's key.
TEST_F(CompileWorkerTest, RefusesToStandInForAnotherToolchain) {
  StartWithNvrtc();
  const auto outcome = Compile(Target{"sm_80", kSms}, "another");
  EXPECT_TRUE(absl::IsFailedPrecondition(outcome.status()));
  EXPECT_THAT(std::string(outcome.status().message()), HasSubstr("another"));
}

TEST_F(CompileWorkerTest, SaysWhenNvrtcDoesNotKnowTheArchitecture) {
  StartWithNvrtc();
  const auto outcome = Compile(Target{"sm_999", 1}, toolchain_.id);
  EXPECT_TRUE(absl::IsUnimplemented(outcome.status())) << outcome.status();
}

}  // namespace
}  // namespace kiln
