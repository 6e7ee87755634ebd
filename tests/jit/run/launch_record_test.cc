#include "jit/run/launch_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/jit/run/sample_artifact.h"

namespace kiln {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(LaunchRecordTest, SampleIsWellFormed) {
  EXPECT_TRUE(CheckLaunchRecord(SampleArtifact()).ok());
}

TEST(LaunchRecordTest, InRangeDoesNotOverflow) {
  EXPECT_TRUE(InRange(0, 0, 0));
  EXPECT_TRUE(InRange(4, 6, 10));
  EXPECT_FALSE(InRange(5, 6, 10));
  EXPECT_FALSE(InRange(-1, 1, 10));
  EXPECT_FALSE(InRange(1, kMax, 10));
  EXPECT_FALSE(InRange(kMax, kMax, kMax));
}

struct Damage {
  std::string path;
  std::function<void(Artifact&)> apply;
};

// Each would let a damaged cache entry or a compiler bug reach memory that the
// caller did not give.
TEST(LaunchRecordTest, EveryDamageIsRefusedWithItsPath) {
  const std::vector<Damage> damages = {
      {"variants", [](Artifact& a) { a.variants.clear(); }},
      {"variants",
       [](Artifact& a) { a.variants[0].requires_.cooperative = true; }},
      {"variants[0].launch[0].module",
       [](Artifact& a) { a.variants[0].launch[0].module = 1; }},
      {"variants[0].launch[0].entry",
       [](Artifact& a) { a.variants[0].launch[0].entry = -1; }},
      {"variants[0].launch[0].args[0]",
       [](Artifact& a) { a.variants[0].launch[0].args[0].slot = 3; }},
      {"variants[0].launch[0].args[0]",
       [](Artifact& a) { a.variants[0].launch[0].args[0].offset_bytes = 64; }},
      {"variants[0].launch[0].args[2]",
       [](Artifact& a) { a.variants[0].launch[0].args[2].offset_bytes = 512; }},
      {"variants[0].launch[0].args[1]",
       [](Artifact& a) { a.variants[0].launch[0].args[1].offset_bytes = -8; }},
      {"variants[0].launch[0].dynamic_shared_bytes",
       [](Artifact& a) { a.variants[0].launch[0].dynamic_shared_bytes = 1; }},
      {"variants[0].zero[0]",
       [](Artifact& a) { a.variants[0].zero[0].offset_bytes = 500; }},
      {"variants[0].zero[0]",
       [](Artifact& a) { a.variants[0].zero[0].size_bytes = kMax; }},
      {"variants[0].prepare",
       [](Artifact& a) { a.variants[0].prepare[0].args[0].slot = 0; }},
      {"variants[0].prepare",
       [](Artifact& a) {
         a.variants[0].prepare[0].args[0].slot = 0;
         a.variants[0].prepared_from = {0};
       }},
      {"variants[0].prepare",
       [](Artifact& a) { a.variants[0].prepared_from.clear(); }},
      {"variants[0].prepared_from[0]",
       [](Artifact& a) { a.variants[0].prepared_from[0] = 9; }},
      {"variants[0].launch[0].args[0]",
       [](Artifact& a) {
         a.variants[0].launch[0].args[0].kind = ArgKind::kTensorMap;
       }},
      {"variants[0].launch[0].args[0]",
       [](Artifact& a) {
         a.variants[0].launch[0].args[0].kind = ArgKind::kConstant;
       }},
  };
  for (const Damage& damage : damages) {
    Artifact artifact = SampleArtifact();
    damage.apply(artifact);
    const absl::Status status = CheckLaunchRecord(artifact);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << damage.path;
    EXPECT_THAT(std::string(status.message()),
                testing::HasSubstr(damage.path + ":"));
  }
}

}  // namespace
}  // namespace kiln
