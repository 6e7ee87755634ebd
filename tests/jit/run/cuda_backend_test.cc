#include "server/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/jit/run/fake_driver.h"
#include "tests/jit/run/sample_artifact.h"

namespace kiln {
namespace {

using testing::HasSubstr;

// Memory of the client for the sample's three slots: input and parameter in
// one allocation, the output in another.
class CudaBackendTest : public testing::Test {
 protected:
  CudaBackendTest() { Start({}); }

  void Start(CudaBackendOptions options) {
    options.driver_path = KILN_FAKE_CUDA_PATH;
    backend_.reset();
    backend_ = CreateCudaBackend(0, options).value();
    inputs_ = Open(1, 4096);
    output_ = Open(2, 4096);
    job_.session = "session";
    job_.parameter_version = 1;
    job_.slots = {{inputs_, 0}, {inputs_, 1024}, {output_, 0}};
  }

  uint64_t Open(unsigned char id, int64_t bytes) {
    return backend_->Open(MemoryIpcHandle{fake_.ForeignHandle(id, bytes)})
        .value()
        .id;
  }

  absl::Status Execute() {
    return backend_->Execute(SampleArtifact(), job_).status();
  }

  FakeDriver fake_;
  std::unique_ptr<ExecutionBackend> backend_;
  uint64_t inputs_ = 0;
  uint64_t output_ = 0;
  ExecuteJob job_;
};

TEST_F(CudaBackendTest, DescribesItsDevice) {
  const DeviceDescription device = backend_->Describe();
  EXPECT_EQ(device.device, "cuda:0");
  EXPECT_EQ(ToString(device.target), "sm_90a/132");
  EXPECT_EQ(device.memory_bytes, int64_t{80} << 30);
}

TEST_F(CudaBackendTest, ExecutesAndAnswersMicroseconds) {
  EXPECT_EQ(backend_->Execute(SampleArtifact(), job_).value(), 250);
  EXPECT_EQ(fake_.TakeLog().size(), 3u);
  EXPECT_EQ(backend_->Execute(SampleArtifact(), job_).value(), 250);
  EXPECT_EQ(fake_.TakeLog().size(), 2u);  // prepared already
}

// The driver refuses a second open of a handle in the fake; a real one returns
// the same address, and one close would unmap both.
TEST_F(CudaBackendTest, HandleOpenedTwiceIsMappedOnce) {
  const std::string handle = fake_.ForeignHandle(3, 4096);
  const uint64_t first = backend_->Open(MemoryIpcHandle{handle}).value().id;
  const uint64_t second = backend_->Open(MemoryIpcHandle{handle}).value().id;
  EXPECT_NE(first, second);
  EXPECT_EQ(fake_.Count("mappings"), 3);
  backend_->Close(first);
  EXPECT_EQ(fake_.Count("mappings"), 3);
  backend_->Close(first);  // no such id any more
  EXPECT_EQ(fake_.Count("mappings"), 3);
  backend_->Close(second);
  EXPECT_EQ(fake_.Count("mappings"), 2);
}

TEST_F(CudaBackendTest, SizeIsTheDrivers) {
  const auto opened =
      backend_->Open(MemoryIpcHandle{fake_.ForeignHandle(4, 12345)});
  EXPECT_EQ(opened.value().size_bytes, 12345);
}

TEST_F(CudaBackendTest, BadHandlesAreInvalidArguments) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      backend_->Open(MemoryIpcHandle{"short"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      backend_->Open(MemoryIpcHandle{std::string(64, 'z')}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(backend_->Open(MemoryDescriptor{}).status()));
  EXPECT_FALSE(backend_->poisoned());
}

// The front checks all of these too; an executor that trusted it would turn a
// bug there into writes to another client's memory.
TEST_F(CudaBackendTest, RangesAreCheckedAgain) {
  struct Case {
    int slot;
    int64_t offset;
    const char* message;
  };
  for (const Case& c : {Case{2, 4096 - 64, "does not lie inside"},
                        Case{2, -16, "does not lie inside"},
                        Case{2, INT64_MAX - 4, "does not lie inside"},
                        Case{0, 8, "misaligned"}}) {
    const SlotBinding good = job_.slots[c.slot];
    job_.slots[c.slot].offset_bytes = c.offset;
    const absl::Status status = Execute();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    job_.slots[c.slot] = good;
  }
  EXPECT_TRUE(Execute().ok());
}

TEST_F(CudaBackendTest, OutputsMayNotOverlapAnything) {
  job_.slots[2] = {inputs_, 1024 - 64};
  EXPECT_THAT(std::string(Execute().message()), HasSubstr("overlaps slot 1"));
  job_.slots[2] = {inputs_, 1024 + 64};
  EXPECT_TRUE(Execute().ok());
  job_.slots[1] = job_.slots[0];  // inputs may
  EXPECT_TRUE(Execute().ok());
}

TEST_F(CudaBackendTest, ClosedMemoryIsAFailedPrecondition) {
  backend_->Close(output_);
  EXPECT_TRUE(absl::IsFailedPrecondition(Execute()));
}

TEST_F(CudaBackendTest, SessionsHaveTheirOwnAreas) {
  ASSERT_TRUE(Execute().ok());
  const long long one = fake_.Count("allocations");
  job_.session = "another";
  ASSERT_TRUE(Execute().ok());
  EXPECT_EQ(fake_.Count("allocations"), 2 * one);
  backend_->EndSession("another");
  EXPECT_EQ(fake_.Count("allocations"), one);
  backend_->EndSession("session");
  EXPECT_EQ(fake_.Count("allocations"), 0);
}

TEST_F(CudaBackendTest, ArenaLimitEvictsThenRefuses) {
  CudaBackendOptions options;
  options.arena_limit_bytes = 512 + 256 + 100;  // one artifact's areas
  Start(options);
  ASSERT_TRUE(Execute().ok());
  Artifact other = SampleArtifact();
  other.key = std::string(64, 'b');
  EXPECT_TRUE(backend_->Execute(other, job_).ok());  // evicts the first
  other.key = std::string(64, 'c');
  other.variants[0].workspace_bytes = 4096;
  EXPECT_TRUE(
      absl::IsResourceExhausted(backend_->Execute(other, job_).status()));
  EXPECT_TRUE(Execute().ok());
  EXPECT_FALSE(backend_->poisoned());
}

TEST_F(CudaBackendTest, DeviceOutOfMemoryIsExhausted) {
  fake_.Fail("cuMemAlloc", driver::kOutOfMemory);
  EXPECT_TRUE(absl::IsResourceExhausted(Execute()));
  EXPECT_TRUE(Execute().ok());
}

TEST_F(CudaBackendTest, FaultPoisons) {
  fake_.Fail("cuStreamSynchronize", driver::kIllegalAddress);
  const absl::Status status = Execute();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_TRUE(backend_->poisoned());
  EXPECT_FALSE(Execute().ok());
}

TEST_F(CudaBackendTest, EverythingIsGivenBack) {
  ASSERT_TRUE(Execute().ok());
  backend_.reset();
  for (const char* kind : {"libraries", "allocations", "mappings", "streams",
                           "events", "contexts"}) {
    EXPECT_EQ(fake_.Count(kind), 0) << kind;
  }
}

TEST_F(CudaBackendTest, NoDriverIsAFailedPrecondition) {
  CudaBackendOptions options;
  options.driver_path = "libno-such-driver.so";
  EXPECT_TRUE(
      absl::IsFailedPrecondition(CreateCudaBackend(0, options).status()));
}

}  // namespace
}  // namespace kiln
