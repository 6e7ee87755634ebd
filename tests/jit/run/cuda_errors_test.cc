#include "jit/run/cuda_errors.h"

#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

TEST(CudaErrorsTest, SuccessIsOk) {
  EXPECT_TRUE(CudaStatus(driver::kSuccess, "cuInit").ok());
}

TEST(CudaErrorsTest, MessageNamesCallAndCode) {
  const absl::Status status = CudaStatus(driver::kInvalidValue, "cuMemAlloc");
  EXPECT_EQ(std::string(status.message()),
            "cuMemAlloc fails (CUDA_ERROR_INVALID_VALUE, 1).");
}

TEST(CudaErrorsTest, StickyErrorsAreFatalAndAborted) {
  for (driver::Result result :
       {driver::kIllegalAddress, driver::kLaunchFailed, driver::kAssert,
        driver::kIllegalInstruction, driver::kEccUncorrectable,
        driver::kMpsClientTerminated, driver::kUnknown}) {
    const absl::Status status = CudaStatus(result, "cuStreamSynchronize");
    EXPECT_TRUE(IsFatal(status)) << status;
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  }
}

TEST(CudaErrorsTest, OtherErrorsAreNotFatal) {
  for (driver::Result result :
       {driver::kOutOfMemory, driver::kInvalidValue, driver::kNoDevice,
        driver::kLaunchOutOfResources, driver::kStreamCaptureUnsupported}) {
    EXPECT_FALSE(IsFatal(CudaStatus(result, "cuMemAlloc")));
  }
  EXPECT_FALSE(IsFatal(absl::AbortedError("not a CUDA error")));
}

TEST(CudaErrorsTest, UnnamedCodesAreInternal) {
  const absl::Status status =
      CudaStatus(static_cast<driver::Result>(812), "cuInit");
  EXPECT_EQ(std::string(status.message()), "cuInit fails (CUDA_ERROR, 812).");
  EXPECT_TRUE(absl::IsInternal(status));
}

}  // namespace
}  // namespace kiln
