#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using ::testing::HasSubstr;

constexpr char kTarget[] = "sm_80/108";

ArtifactSource SourceOf(Client& client, const Plan& plan,
                        const std::string& variant = "") {
  CompileOptions options;
  options.target = kTarget;
  options.variant = variant;
  const absl::StatusOr<CompiledPlan> compiled = client.Compile(plan, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  return compiled.ok() ? compiled->source : ArtifactSource::kCompiled;
}

// With the same cache.
void Restart(Daemon& daemon) {
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
  daemon.Start();
}

TEST(CacheSourceTest, CompiledThenMemoryThenDiskAfterRestart) {
  Daemon daemon;
  const Plan plan = SmallPlan(1);
  {
    Client client = daemon.Connect();
    EXPECT_EQ(SourceOf(client, plan), ArtifactSource::kCompiled);
    EXPECT_EQ(SourceOf(client, plan), ArtifactSource::kMemory);
  }
  Restart(daemon);
  Client client = daemon.Connect();
  EXPECT_EQ(SourceOf(client, plan), ArtifactSource::kDisk);
  EXPECT_EQ(SourceOf(client, plan), ArtifactSource::kMemory);
}

// Prevents a compile where the client asked for none.
TEST(CacheSourceTest, HitOnlyMissSaysWhatDiffersAndCompilesNothing) {
  const Daemon daemon;
  Client client = daemon.Connect();
  SourceOf(client, SmallPlan(1));
  const int64_t compiles = daemon.Compiles();
  CompileOptions options;
  options.target = "sm_90a/132";
  options.hit_only = true;
  const auto missed = client.Compile(SmallPlan(1), options);
  EXPECT_EQ(missed.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missed.status().message()), HasSubstr("target"));
  EXPECT_EQ(daemon.Compiles(), compiles);

  options.target = kTarget;
  EXPECT_TRUE(client.Compile(SmallPlan(1), options).ok());
}

TEST(CacheSourceTest, ExplainNamesTheDifferenceOfAMissAndTheTierOfAHit) {
  const Daemon daemon;
  WriteWhole(daemon.folder() / "plan.kiln", SmallPlanText(1));
  const std::string plan = daemon.folder() / "plan.kiln";
  EXPECT_THAT(daemon.Kiln({"explain", plan, "--target", "a100"}).out,
              HasSubstr("the cache is empty"));
  EXPECT_EQ(daemon.Kiln({"compile", plan, "--target", "a100"}).status, 0);
  EXPECT_THAT(daemon.Kiln({"explain", plan, "--target", "a100"}).out,
              HasSubstr("hit in memory"));
  EXPECT_THAT(daemon.Kiln({"explain", plan, "--target", "h100-sxm"}).out,
              HasSubstr("target: sm_90a/132 (wanted) != sm_80/108 (found)"));
}

// Prevents a schedule for what cannot be compiled, even before the first worker
// is up.
TEST(CacheSourceTest, TargetsThatDoNotCompileAreNotExplained) {
  const Daemon daemon;
  WriteWhole(daemon.folder() / "plan.kiln", SmallPlanText(1));
  const std::string plan = daemon.folder() / "plan.kiln";
  for (const char* target :
       {"sm_200/3", "sm_70/3", "sm_10/3", "sm_100", "sm_80a/3"}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"explain", plan, "--schedule"},
          std::vector<std::string>{"compile", plan}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--target", target});
      const CommandResult result = daemon.Kiln(arguments);
      EXPECT_EQ(result.status, 2) << target << ": " << result.err;
      EXPECT_THAT(result.err, HasSubstr("allowed: sm_")) << target;
    }
  }
}

// Prevents that plans wait for a compiler before their first result, and that
// each start of a daemon compiles the eager kernels again.
TEST(CacheSourceTest, EagerKernelsAreCompiledOnceForAllPlans) {
  Daemon daemon;
  const int64_t before = daemon.Compiles();
  {
    Client client = daemon.Connect();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(SourceOf(client, SmallPlan(i), "eager"),
                ArtifactSource::kCompiled);
    }
    EXPECT_EQ(SourceOf(client, SmallPlan(0), "eager"), ArtifactSource::kMemory);
  }
  EXPECT_EQ(daemon.Compiles() - before, 1);
  Restart(daemon);
  const int64_t after_start = daemon.Compiles();
  Client client = daemon.Connect();
  EXPECT_EQ(SourceOf(client, SmallPlan(1), "eager"), ArtifactSource::kCompiled);
  EXPECT_EQ(daemon.Compiles(), after_start);
}

// An operation at a time has no schedule to be explained.
TEST(CacheSourceTest, ExplainRefusesTheScheduleOfEagerKernels) {
  const Daemon daemon;
  WriteWhole(daemon.folder() / "plan.kiln", SmallPlanText(1));
  const auto explained =
      daemon.Kiln({"explain", daemon.folder() / "plan.kiln", "--target", "a100",
                   "--schedule", "--variant", "eager"});
  EXPECT_NE(explained.status, 0);
  EXPECT_THAT(explained.err, HasSubstr("Eager kernels have no schedule"));
}

// Prevents statistics of files that are no longer there.
TEST(CacheSourceTest, WhatIsRemovedByHandIsNotCounted) {
  const Daemon daemon;
  Client client = daemon.Connect();
  CompileOptions options;
  options.target = kTarget;
  for (const int number : {1, 2, 3}) {
    EXPECT_TRUE(client.Compile(SmallPlan(number), options).ok());
  }
  EXPECT_EQ(daemon.Stats().entries(), 3);
  std::filesystem::remove_all(daemon.folder() / "cache" / "entries");
  EXPECT_EQ(daemon.Stats().entries(), 0);
  EXPECT_EQ(daemon.Stats().size_bytes(), 0);
  EXPECT_EQ(daemon.Kiln({"cache", "ls"}).out, "");
}

// Prevents that an entry which is set aside is gone after the next restart.
TEST(CacheSourceTest, WhatVerifySetsAsideIsStoredAgain) {
  Daemon daemon;
  const Plan plan = SmallPlan(1);
  {
    Client client = daemon.Connect();
    CompileOptions options;
    options.target = kTarget;
    const std::string key = client.Compile(plan, options)->key;
    const auto file = daemon.folder() / "cache" / "entries" / key.substr(0, 2) /
                      (key + ".kiln");
    std::string bytes = ReadWhole(file);
    ASSERT_GT(bytes.size(), 200u);
    bytes[150] ^= 1;
    WriteWhole(file, bytes);
    EXPECT_EQ(daemon.Kiln({"cache", "verify"}).status, 8);
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_EQ(SourceOf(client, plan), ArtifactSource::kMemory);
    EXPECT_EQ(ReadWhole(file).size(), bytes.size());
    EXPECT_EQ(daemon.Kiln({"cache", "gc", "--limit", "1"}).status, 0);
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_EQ(SourceOf(client, plan), ArtifactSource::kMemory);
  }
  Restart(daemon);
  Client client = daemon.Connect();
  EXPECT_EQ(SourceOf(client, plan), ArtifactSource::kDisk);
}

// Prevents a stampede: each of the keys is compiled by whoever comes first,
// and by nobody else.
TEST(CacheSourceTest, ManyClientsWithTheSameColdKeysCauseOneCompileEach) {
  constexpr int kClients = 64;
  constexpr int kKeys = 100;
  const Daemon daemon;
  const int64_t before = daemon.Compiles();
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&daemon] {
      Client client = daemon.Connect();
      for (int key = 0; key < kKeys; ++key) SourceOf(client, SmallPlan(key));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(daemon.Compiles() - before, kKeys);
}

}  // namespace
}  // namespace kiln::e2e
