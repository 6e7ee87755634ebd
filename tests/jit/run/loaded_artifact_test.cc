#include "jit/run/loaded_artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jit/run/cuda_errors.h"
#include "tests/jit/run/fake_driver.h"
#include "tests/jit/run/sample_artifact.h"

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class LoadedArtifactTest : public testing::Test {
 protected:
  std::unique_ptr<LoadedArtifact> Load(const Artifact& artifact) {
    device_ = DescribeDevice(fake_.table(), 0).value();
    return LoadedArtifact::Load(fake_.table(), device_, artifact).value();
  }

  absl::Status LoadError(const Artifact& artifact) {
    device_ = DescribeDevice(fake_.table(), 0).value();
    return LoadedArtifact::Load(fake_.table(), device_, artifact).status();
  }

  FakeDriver fake_;
  CudaDevice device_;
  const std::vector<driver::DevicePtr> slots_ = {0x1000, 0x2000, 0x3000};
  LaunchAreas areas_{.workspace = 0x10000, .prepared = 0x20000};
};

TEST_F(LoadedArtifactTest, DeviceIsDescribed) {
  const CudaDevice device = DescribeDevice(fake_.table(), 0).value();
  EXPECT_EQ(ToString(device.target), "sm_90a/132");
  EXPECT_EQ(device.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_TRUE(FindDevice(fake_.table(), device.uuid).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      FindDevice(fake_.table(), "GPU-other").status()));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(DescribeDevice(fake_.table(), 1).status()));
}

TEST_F(LoadedArtifactTest, AnotherTargetIsRefused) {
  fake_.Set("sm_count", 114);
  EXPECT_TRUE(absl::IsFailedPrecondition(LoadError(SampleArtifact())));
}

// Argument mismatches would otherwise read garbage on the device.
TEST_F(LoadedArtifactTest, ArgumentsMustFitTheKernel) {
  Artifact artifact = SampleArtifact();
  artifact.variants[0].launch[0].args.pop_back();
  EXPECT_THAT(std::string(LoadError(artifact).message()),
              HasSubstr("takes more arguments"));

  artifact = SampleArtifact();
  artifact.variants[0].launch[0].args[0].kind = ArgKind::kConstant;
  artifact.variants[0].launch[0].args[0].bytes = "1234";
  EXPECT_THAT(std::string(LoadError(artifact).message()),
              HasSubstr("(4 bytes given, 8 taken)"));
}

TEST_F(LoadedArtifactTest, UnloadsEverything) {
  Load(SampleArtifact());
  EXPECT_EQ(fake_.Count("libraries"), 0);
}

TEST_F(LoadedArtifactTest, PreparesOncePerVersion) {
  const auto loaded = Load(SampleArtifact());
  ASSERT_TRUE(loaded->Launch(nullptr, slots_, 1, areas_).ok());
  EXPECT_THAT(fake_.TakeLog(), ElementsAre(StartsWith("launch pack"),
                                           StartsWith("memset 65536 32"),
                                           StartsWith("launch run")));
  ASSERT_TRUE(loaded->Launch(nullptr, slots_, 1, areas_).ok());
  EXPECT_THAT(fake_.TakeLog(),
              ElementsAre(StartsWith("memset"), StartsWith("launch run")));
  ASSERT_TRUE(loaded->Launch(nullptr, slots_, 2, areas_).ok());
  EXPECT_EQ(fake_.TakeLog().size(), 3u);

  std::vector<driver::DevicePtr> moved = slots_;
  moved[1] = 0x4000;
  ASSERT_TRUE(loaded->Launch(nullptr, moved, 2, areas_).ok());
  EXPECT_EQ(fake_.TakeLog().size(), 3u);
}

TEST_F(LoadedArtifactTest, VersionZeroPreparesEveryTime) {
  const auto loaded = Load(SampleArtifact());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(loaded->Launch(nullptr, slots_, 0, areas_).ok());
    EXPECT_EQ(fake_.TakeLog().size(), 3u);
  }
}

// A graph that is never replayed must not count as having prepared anything.
TEST_F(LoadedArtifactTest, CaptureLeavesAreasUnchanged) {
  const auto loaded = Load(SampleArtifact());
  fake_.Set("capturing", 1);
  ASSERT_TRUE(loaded->Launch(nullptr, slots_, 1, areas_).ok());
  EXPECT_FALSE(areas_.is_prepared);
  EXPECT_EQ(fake_.TakeLog().size(), 3u);

  fake_.Set("capturing", 0);
  ASSERT_TRUE(loaded->Prepare(nullptr, slots_, 1, areas_).ok());
  EXPECT_EQ(fake_.TakeLog().size(), 1u);
  fake_.Set("capturing", 1);
  ASSERT_TRUE(loaded->Launch(nullptr, slots_, 1, areas_).ok());
  EXPECT_EQ(fake_.TakeLog().size(), 2u);
}

TEST_F(LoadedArtifactTest, ZeroOnceRunsAgainAfterFailure) {
  Artifact artifact = SampleArtifact();
  artifact.variants[0].zero = {{Area::kWorkspace, 64, 8, ZeroWhen::kOnce}};
  const auto loaded = Load(artifact);
  EXPECT_TRUE(loaded->keeps_workspace());
  ASSERT_TRUE(loaded->Launch(nullptr, slots_, 1, areas_).ok());
  EXPECT_THAT(fake_.TakeLog()[0], "memset 65600 8");
  ASSERT_TRUE(loaded->Launch(nullptr, slots_, 1, areas_).ok());
  EXPECT_THAT(fake_.TakeLog(), ElementsAre(StartsWith("launch run")));

  fake_.Fail("cuLaunchKernelEx", driver::kLaunchOutOfResources);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(loaded->Launch(nullptr, slots_, 1, areas_)));
  ASSERT_TRUE(loaded->Launch(nullptr, slots_, 1, areas_).ok());
  EXPECT_THAT(fake_.TakeLog(),
              ElementsAre("memset 65600 8", StartsWith("launch pack"),
                          StartsWith("launch run")));
}

TEST_F(LoadedArtifactTest, BadAddressesAreRefusedBeforeAnyLaunch) {
  const auto loaded = Load(SampleArtifact());
  const std::vector<std::vector<driver::DevicePtr>> bad = {
      {0x1000, 0x2000},
      {0x1000, 0, 0x3000},
      {0x1008, 0x2000, 0x3000},
      {0x1000, 0x2000, 0x2000 - 64}};  // the output ends in the parameter
  for (const std::vector<driver::DevicePtr>& slots : bad) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(loaded->Launch(nullptr, slots, 1, areas_)));
  }
  EXPECT_TRUE(fake_.TakeLog().empty());
}

TEST_F(LoadedArtifactTest, NeighboursAndEqualInputsMayBeLaunched) {
  const auto loaded = Load(SampleArtifact());
  const std::vector<driver::DevicePtr> touching = {0x1000, 0x1000, 0x1000 + 64};
  EXPECT_TRUE(loaded->Launch(nullptr, touching, 1, areas_).ok());
}

TEST_F(LoadedArtifactTest, FirstVariantThatFitsIsUsed) {
  Artifact artifact = SampleArtifact();
  Variant cooperative = artifact.variants[0];
  cooperative.requires_.cooperative = true;
  cooperative.launch[0].cooperative = true;
  cooperative.launch[0].grid = {264, 1, 1};
  artifact.variants.insert(artifact.variants.begin(), cooperative);

  EXPECT_EQ(Load(artifact)->variant_index(), 1);  // 132 blocks fit
  fake_.Set("blocks_per_sm", 2);
  EXPECT_EQ(Load(artifact)->variant_index(), 0);
  fake_.Set("cooperative", 0);
  EXPECT_EQ(Load(artifact)->variant_index(), 1);
}

TEST_F(LoadedArtifactTest, ClusterVariantNeedsRoomForACluster) {
  Artifact artifact = SampleArtifact();
  Variant clustered = artifact.variants[0];
  clustered.requires_.cluster_size = 16;
  clustered.launch[0].grid = {16, 1, 1};
  clustered.launch[0].cluster = {16, 1, 1};
  clustered.launch[0].nonportable_cluster = true;
  artifact.variants.insert(artifact.variants.begin(), clustered);

  EXPECT_EQ(Load(artifact)->variant_index(), 0);
  fake_.Set("active_clusters", 0);
  EXPECT_EQ(Load(artifact)->variant_index(), 1);
  fake_.Set("cluster", 0);
  EXPECT_EQ(Load(artifact)->variant_index(), 1);
}

TEST_F(LoadedArtifactTest, FatalErrorsStayFatal) {
  const auto loaded = Load(SampleArtifact());
  fake_.Fail("cuLaunchKernelEx", driver::kIllegalAddress);
  EXPECT_TRUE(IsFatal(loaded->Launch(nullptr, slots_, 1, areas_)));
  EXPECT_TRUE(IsFatal(loaded->Launch(nullptr, slots_, 1, areas_)));
}

}  // namespace
}  // namespace kiln
