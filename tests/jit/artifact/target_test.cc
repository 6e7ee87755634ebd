#include "jit/artifact/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "jit/plan/errors.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

Target Parsed(std::string_view text) {
  absl::StatusOr<Target> target = ParseTarget(text);
  EXPECT_TRUE(target.ok()) << text << ": " << target.status();
  return target.ok() ? *target : Target();
}

TEST(TargetTest, DeviceNamesGiveArchitectureAndCount) {
  EXPECT_EQ(Parsed("h100-sxm"), (Target{"sm_90a", 132}));
  EXPECT_EQ(Parsed("h100-pcie"), (Target{"sm_90a", 114}));
  EXPECT_EQ(Parsed("h200"), (Target{"sm_90a", 132}));
  EXPECT_EQ(Parsed("a100"), (Target{"sm_80", 108}));
  EXPECT_EQ(Parsed("l40s"), (Target{"sm_89", 142}));
  EXPECT_EQ(Parsed("t4"), (Target{"sm_75", 40}));
}

TEST(TargetTest, BareArchitectureTakesItsFirstKnownDevice) {
  EXPECT_EQ(Parsed("sm_90a"), Parsed("h100-sxm"));
  EXPECT_EQ(Parsed("sm_80"), Parsed("a100"));
}

TEST(TargetTest, ArchitectureWithCountNeedsNoKnownDevice) {
  EXPECT_EQ(Parsed("sm_120f/170"), (Target{"sm_120f", 170}));
  EXPECT_EQ(Parsed("sm_90a/16"), (Target{"sm_90a", 16}));
}

TEST(TargetTest, TextRoundTrips) {
  for (const KnownDevice& device : KnownDevices()) {
    const Target target = Parsed(device.name);
    EXPECT_EQ(Parsed(ToString(target)), target) << device.name;
  }
  EXPECT_EQ(Parsed("cpu"), (Target{"cpu", 0}));
  EXPECT_EQ(ToString(Parsed("cpu")), "cpu");
}

TEST(TargetTest, MalformedTextIsInvalidAndListsTheDevices) {
  for (const char* text : {"", "gpu", "H100", "cpu/4", "sm_90b/132", "sm_9/132",
                           "sm_/132", "sm_1234/8", "sm_75 /40",
                           "compute_90/132", "/132", "sm_05/1", "sm_a/1"}) {
    const absl::Status status = ParseTarget(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("h100-sxm")) << text;
  }
}

TEST(TargetTest, ACountThatIsNoneIsInvalidAndItsLimitsAreNamed) {
  for (const char* text :
       {"sm_90a/", "sm_90a/0", "sm_90a/-1", "sm_90a/0132", "sm_90a/132x",
        "sm_90a/65536", "sm_90a/99999999999", "sm_90a/132/1"}) {
    const absl::Status status = ParseTarget(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(DetailOf(status).field, "target");
    EXPECT_EQ(DetailOf(status).value, text);
    EXPECT_EQ(DetailOf(status).limit, "sm_90a/1 to sm_90a/65535");
  }
  EXPECT_EQ(Parsed("sm_90a/65535").sm_count, 65535);
}

TEST(TargetTest, AnArchitectureOfNoKnownDeviceNeedsItsCount) {
  for (const std::string text : {"sm_90", "sm_99", "sm_100", "sm_120f"}) {
    const absl::Status status = ParseTarget(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("count")) << text;
    EXPECT_EQ(DetailOf(status).limit,
              text + "/1 to " + text +
                  "/65535; without a count sm_90a, sm_80, sm_86, sm_89, sm_75");
  }
}

TEST(TargetTest, ArchitecturesBeforeTheOldestAreUnimplemented) {
  for (const char* text : {"sm_70", "sm_70/80", "sm_10/3", "sm_72/1"}) {
    const absl::Status status = ParseTarget(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << text;
    EXPECT_EQ(DetailOf(status).limit, "sm_75 and later");
  }
}

// Prevents that a schedule is explained which NVRTC then has no flag for.
TEST(TargetTest, SuffixesThatAnArchitectureHasNotAreInvalid) {
  for (const auto& [text, arch, allowed] :
       {std::tuple("sm_80a/108", "sm_80a", "sm_80"),
        std::tuple("sm_80a", "sm_80a", "sm_80"),
        std::tuple("sm_89f/58", "sm_89f", "sm_89"),
        std::tuple("sm_90f/132", "sm_90f", "sm_90, sm_90a")}) {
    const absl::Status status = ParseTarget(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(DetailOf(status).field, "target");
    EXPECT_EQ(DetailOf(status).value, arch);
    EXPECT_EQ(DetailOf(status).limit, allowed);
  }
  for (const char* text : {"sm_100a/148", "sm_100f/148", "sm_103a/160"}) {
    EXPECT_EQ(ToString(Parsed(text)), text);
  }
}

TEST(TargetTest, DeviceOfCapability90GetsTheSuffix) {
  EXPECT_EQ(TargetOfDevice(9, 0, 132), (Target{"sm_90a", 132}));
  EXPECT_EQ(TargetOfDevice(8, 6, 84), (Target{"sm_86", 84}));
  EXPECT_EQ(TargetOfDevice(10, 0, 148), (Target{"sm_100", 148}));
}

}  // namespace
}  // namespace kiln
