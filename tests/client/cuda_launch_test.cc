#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "client/cli/launch.h"
#include "client/cuda_memory.h"
#include "jit/artifact/digest.h"
#include "proto/artifact_converter.h"
#include "tests/jit/run/fake_driver.h"
#include "tests/jit/run/sample_artifact.h"

namespace kiln {
namespace {

using client::CudaContext;
using client::CudaMemory;

constexpr char kUuid[] = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f";

class CudaLaunchTest : public testing::Test {
 protected:
  std::shared_ptr<const CudaContext> Open() {
    return CudaContext::Open(kUuid, KILN_FAKE_CUDA_PATH).value();
  }
  FakeDriver fake_;
};

TEST_F(CudaLaunchTest, DeviceIsFoundByUuidAndReleased) {
  EXPECT_EQ(Open()->device().name, "Fake device");
  EXPECT_EQ(fake_.Count("contexts"), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CudaContext::Open("GPU-other", KILN_FAKE_CUDA_PATH).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CudaContext::Open(kUuid, "/nowhere/libcuda.so.1").status()));
}

TEST_F(CudaLaunchTest, MemoryIsCopiedBothWaysAndFreed) {
  {
    const CudaMemory memory = CudaMemory::Allocate(Open(), 8).value();
    const std::array<double, 1> up = {42.5};
    ASSERT_TRUE(memory.CopyFrom(std::as_bytes(std::span(up))).ok());
    std::array<double, 1> down = {};
    ASSERT_TRUE(memory.CopyTo(std::as_writable_bytes(std::span(down))).ok());
    EXPECT_EQ(down, up);
    EXPECT_EQ(fake_.Count("allocations"), 1);
  }
  EXPECT_EQ(fake_.Count("allocations"), 0);
  EXPECT_EQ(fake_.Count("contexts"), 0);
}

// Prevents reads and writes beyond a buffer, whose allocation is larger.
TEST_F(CudaLaunchTest, CopiesStayInsideTheBuffer) {
  const CudaMemory memory = CudaMemory::Allocate(Open(), 8).value();
  std::array<std::byte, 9> bytes = {};
  EXPECT_TRUE(absl::IsInvalidArgument(memory.CopyFrom(bytes)));
  EXPECT_TRUE(absl::IsInvalidArgument(memory.CopyTo(bytes)));
  EXPECT_TRUE(
      absl::IsInvalidArgument(CudaMemory::Allocate(Open(), 0).status()));
}

// Prevents sharing a block with unrelated memory of the client.
TEST_F(CudaLaunchTest, ExportedAllocationIsWholeGranules) {
  const CudaMemory memory = CudaMemory::Allocate(Open(), 100).value();
  const ExportedMemory exported = memory.Export().value();
  EXPECT_EQ(exported.size_bytes, 2 << 20);
  EXPECT_EQ(exported.offset_bytes, 0);
  EXPECT_EQ(exported.handle.size(), 64U);
}

TEST_F(CudaLaunchTest, BorrowedMemoryIsExportedWithItsOffsetAndNotFreed) {
  const CudaMemory whole = CudaMemory::Allocate(Open(), 4096).value();
  {
    const CudaMemory part(Open(), whole.address() + 256, 128);
    EXPECT_EQ(part.Export()->offset_bytes, 256);
    // The fake driver writes the address and leaves the other bytes alone.
    EXPECT_EQ(part.Export()->handle.substr(0, 8),
              whole.Export()->handle.substr(0, 8));
  }
  EXPECT_EQ(fake_.Count("allocations"), 1);
}

TEST_F(CudaLaunchTest, FailedCopyIsReported) {
  const CudaMemory memory = CudaMemory::Allocate(Open(), 8).value();
  fake_.Fail("cuMemcpyHtoDAsync", driver::kIllegalAddress);
  const std::array<std::byte, 8> bytes = {};
  EXPECT_TRUE(absl::IsAborted(memory.CopyFrom(bytes)));
}

// A plan of three tensors, in another order than the artifact's slots.
class LaunchHereTest : public CudaLaunchTest {
 protected:
  LaunchHereTest() {
    Artifact artifact = SampleArtifact();
    artifact.modules[0].sha256 = Sha256Hex(artifact.modules[0].cubin);
    compiled_.artifact = SerializeArtifact(artifact);
    compiled_.slot_of_input = {1, 0};
    compiled_.slot_of_output = {2};
    tensors_.inputs = {Tensor("w", 16), Tensor("x", 16)};
    tensors_.outputs = {Tensor("y", 32)};
  }

  static cli::RunTensor Tensor(const std::string& name, int64_t elements) {
    return {name,
            {DataType::kF32, {elements}},
            std::vector<char>(elements * sizeof(float), '\xff')};
  }

  CompiledPlan compiled_;
  cli::RunTensors tensors_;
};

TEST_F(LaunchHereTest, RunsAsOftenAsAskedAndPreparesOnce) {
  const auto times_us = cli::LaunchHere(Open(), compiled_, 3, tensors_);
  ASSERT_TRUE(times_us.ok()) << times_us.status();
  EXPECT_EQ(*times_us, (std::vector<int64_t>{250, 250, 250}));
  int prepared = 0;
  int launched = 0;
  for (const std::string& line : fake_.TakeLog()) {
    if (line.rfind("launch pack", 0) == 0) ++prepared;
    if (line.rfind("launch run", 0) == 0) ++launched;
  }
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(launched, 3);
}

TEST_F(LaunchHereTest, FailureLeavesNothingBehind) {
  fake_.Fail("cuLaunchKernelEx", driver::kOutOfMemory);
  EXPECT_TRUE(absl::IsResourceExhausted(
      cli::LaunchHere(Open(), compiled_, 1, tensors_).status()));
  for (const char* kind : {"libraries", "allocations", "streams", "events"}) {
    EXPECT_EQ(fake_.Count(kind), 0) << kind;
  }
}

// Prevents a launch on address 0 for a plan that is not the artifact's.
TEST_F(LaunchHereTest, UnboundSlotIsRefused) {
  compiled_.slot_of_input = {1, -1};
  EXPECT_TRUE(absl::IsInvalidArgument(
      cli::LaunchHere(Open(), compiled_, 1, tensors_).status()));
}

}  // namespace
}  // namespace kiln
