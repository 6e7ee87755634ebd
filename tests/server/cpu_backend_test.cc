#include "server/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "jit/plan/errors.h"
#include "tests/server/cpu_artifact.h"
#include "tests/server/sealed_memory.h"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int OpenDescriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<int>(std::distance(begin(folder), end(folder)));
}

class CpuBackendTest : public ::testing::Test {
 protected:
  uint64_t Open(const SealedMemory& memory) {
    const auto opened = backend_.Open(memory.Share());
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? opened->id : 0;
  }

  absl::Status Execute(SlotBinding input, SlotBinding output) {
    ExecuteJob job;
    job.slots = {input, output};
    return backend_.Execute(CpuArtifact(kReluPlan), job).status();
  }

  CpuBackend backend_;
  SealedMemory memory_{4096};
};

TEST_F(CpuBackendTest, SaysWhatItIs) {
  EXPECT_EQ(backend_.Describe().device, "cpu");
  EXPECT_TRUE(backend_.Describe().target.is_cpu());
  EXPECT_GT(backend_.Describe().memory_bytes, 0);
}

TEST_F(CpuBackendTest, EvaluatesOverTheClientsMemory) {
  memory_.Write(64, {-1, 2, -3, 4});
  const uint64_t id = Open(memory_);
  const absl::Status status = Execute({id, 64}, {id, 1024});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(memory_.Read(1024, 4), ElementsAre(0, 2, 0, 4));
}

TEST_F(CpuBackendTest, SaysTheSizeThatTheKernelSays) {
  EXPECT_EQ(backend_.Open(SealedMemory(12345).Share())->size_bytes, 12345);
}

// Prevents that a client kills the executor by cutting its memory off.
TEST_F(CpuBackendTest, RefusesMemoryThatCanShrink) {
  const auto opened = backend_.Open(SealedMemory(4096, 0).Share());
  EXPECT_TRUE(absl::IsInvalidArgument(opened.status())) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("F_SEAL_SHRINK"));
  const auto grown = backend_.Open(SealedMemory(4096, F_SEAL_GROW).Share());
  EXPECT_TRUE(absl::IsInvalidArgument(grown.status()));
}

TEST_F(CpuBackendTest, RefusesWhatIsNoMemory) {
  FILE* file = tmpfile();
  const MemoryDescriptor descriptor{dup(fileno(file))};
  EXPECT_TRUE(absl::IsInvalidArgument(backend_.Open(descriptor).status()));
  fclose(file);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  close(pipes[1]);
  EXPECT_TRUE(absl::IsInvalidArgument(
      backend_.Open(MemoryDescriptor{pipes[0]}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(backend_.Open(MemoryDescriptor{}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      backend_.Open(MemoryIpcHandle{std::string(64, 'x')}).status()));
}

TEST_F(CpuBackendTest, RefusesEmptyAndReadOnlyMemory) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(backend_.Open(SealedMemory(0).Share()).status()));
  const SealedMemory read_only(4096, F_SEAL_SHRINK | F_SEAL_WRITE);
  EXPECT_TRUE(
      absl::IsInvalidArgument(backend_.Open(read_only.Share()).status()));
}

// Prevents that refused clients use up the executor's descriptors.
TEST_F(CpuBackendTest, HoldsNoDescriptorOfWhatItOpenedOrRefused) {
  const int before = OpenDescriptors();
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_FALSE(backend_.Open(SealedMemory(4096, 0).Share()).ok());
  }
  const uint64_t id = Open(memory_);
  EXPECT_EQ(OpenDescriptors(), before);
  backend_.Close(id);
  EXPECT_EQ(OpenDescriptors(), before);
}

// Prevents that a client reads or writes another's memory by its offsets. The
// tensors are 16 bytes, the memory 4096.
TEST_F(CpuBackendTest, RefusesRangesOutsideTheirMemory) {
  const uint64_t id = Open(memory_);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(Execute({id, 0}, {id, 4080}).ok());
  for (const int64_t offset :
       {int64_t{-1}, int64_t{-16}, int64_t{4084}, int64_t{4096}, kMax - 3,
        kMax - 15, kMax, std::numeric_limits<int64_t>::min()}) {
    const absl::Status as_input = Execute({id, offset}, {id, 0});
    EXPECT_TRUE(absl::IsInvalidArgument(as_input)) << as_input;
    EXPECT_EQ(DetailOf(as_input).field, "slots[0]");
    const absl::Status as_output = Execute({id, 0}, {id, offset});
    EXPECT_TRUE(absl::IsInvalidArgument(as_output)) << as_output;
    EXPECT_EQ(DetailOf(as_output).field, "slots[1]");
  }
}

TEST_F(CpuBackendTest, RefusesMisalignedOffsets) {
  const uint64_t id = Open(memory_);
  EXPECT_TRUE(absl::IsInvalidArgument(Execute({id, 2}, {id, 64})));
}

// Two registrations of one memfd are two mappings of the same bytes.
TEST_F(CpuBackendTest, RefusesOutputsThatOverlap) {
  const uint64_t one = Open(memory_);
  const uint64_t two = Open(memory_);
  EXPECT_TRUE(absl::IsInvalidArgument(Execute({one, 0}, {one, 12})));
  EXPECT_TRUE(absl::IsInvalidArgument(Execute({one, 16}, {two, 16})));
  EXPECT_TRUE(Execute({one, 0}, {two, 16}).ok());
}

TEST_F(CpuBackendTest, RefusesMemoryThatIsNotOpen) {
  const uint64_t id = Open(memory_);
  EXPECT_TRUE(absl::IsFailedPrecondition(Execute({id, 0}, {id + 1, 0})));
  backend_.Close(id);
  backend_.Close(id);
  EXPECT_TRUE(absl::IsFailedPrecondition(Execute({id, 0}, {id, 64})));
}

TEST_F(CpuBackendTest, RefusesTooFewAndTooManySlots) {
  const uint64_t id = Open(memory_);
  for (const int count : {0, 1, 3}) {
    ExecuteJob job;
    for (int i = 0; i < count; ++i) job.slots.push_back({id, 1024 * i});
    EXPECT_TRUE(absl::IsInvalidArgument(
        backend_.Execute(CpuArtifact(kReluPlan), job).status()));
  }
}

TEST_F(CpuBackendTest, RefusesArtifactsOfAnotherTarget) {
  Artifact artifact = CpuArtifact(kReluPlan);
  artifact.target = Target{"sm_90a", 132};
  EXPECT_TRUE(absl::IsFailedPrecondition(
      backend_.Execute(artifact, ExecuteJob()).status()));
}

}  // namespace
}  // namespace kiln
