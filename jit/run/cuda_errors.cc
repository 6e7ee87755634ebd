#include "jit/run/cuda_errors.h"

#include <fmt/format.h>

#include "absl/strings/cord.h"

namespace kiln {
namespace {

constexpr char kFatalPayload[] = "kiln/fatal-cuda-error";

struct ErrorClass {
  driver::Result result;
  std::string_view name;
  absl::StatusCode code;
  bool fatal;
};

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kInternal = absl::StatusCode::kInternal;

constexpr ErrorClass kErrors[] = {
    {driver::kInvalidValue, "CUDA_ERROR_INVALID_VALUE", kInternal, false},
    {driver::kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", kExhausted, false},
    {driver::kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", kInternal, false},
    {driver::kDeinitialized, "CUDA_ERROR_DEINITIALIZED", kAborted, true},
    {driver::kStubLibrary, "CUDA_ERROR_STUB_LIBRARY", kPrecondition, false},
    {driver::kDeviceUnavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE", kPrecondition,
     false},
    {driver::kNoDevice, "CUDA_ERROR_NO_DEVICE", kPrecondition, false},
    {driver::kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", kPrecondition, false},
    {driver::kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", kPrecondition, false},
    {driver::kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", kInternal, false},
    {driver::kMapFailed, "CUDA_ERROR_MAP_FAILED", kInternal, false},
    {driver::kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", kPrecondition,
     false},
    {driver::kEccUncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE", kAborted, true},
    {driver::kNvlinkUncorrectable, "CUDA_ERROR_NVLINK_UNCORRECTABLE", kAborted,
     true},
    {driver::kContained, "CUDA_ERROR_CONTAINED", kAborted, true},
    {driver::kOperatingSystem, "CUDA_ERROR_OPERATING_SYSTEM", kInternal, false},
    {driver::kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", kInternal, false},
    {driver::kNotFound, "CUDA_ERROR_NOT_FOUND", kInternal, false},
    {driver::kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", kAborted, true},
    {driver::kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     kPrecondition, false},
    {driver::kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", kAborted, true},
    {driver::kContextIsDestroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED", kAborted,
     true},
    {driver::kAssert, "CUDA_ERROR_ASSERT", kAborted, true},
    {driver::kHardwareStackError, "CUDA_ERROR_HARDWARE_STACK_ERROR", kAborted,
     true},
    {driver::kIllegalInstruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION", kAborted,
     true},
    {driver::kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", kAborted,
     true},
    {driver::kInvalidAddressSpace, "CUDA_ERROR_INVALID_ADDRESS_SPACE", kAborted,
     true},
    {driver::kInvalidPc, "CUDA_ERROR_INVALID_PC", kAborted, true},
    {driver::kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", kAborted, true},
    {driver::kCooperativeLaunchTooLarge,
     "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", kPrecondition, false},
    {driver::kTensorMemoryLeak, "CUDA_ERROR_TENSOR_MEMORY_LEAK", kAborted,
     true},
    {driver::kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", kPrecondition, false},
    {driver::kSystemNotReady, "CUDA_ERROR_SYSTEM_NOT_READY", kPrecondition,
     false},
    {driver::kSystemDriverMismatch, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     kPrecondition, false},
    {driver::kMpsConnectionFailed, "CUDA_ERROR_MPS_CONNECTION_FAILED",
     kPrecondition, false},
    {driver::kMpsRpcFailure, "CUDA_ERROR_MPS_RPC_FAILURE", kAborted, true},
    {driver::kMpsServerNotReady, "CUDA_ERROR_MPS_SERVER_NOT_READY",
     kPrecondition, false},
    {driver::kMpsClientTerminated, "CUDA_ERROR_MPS_CLIENT_TERMINATED", kAborted,
     true},
    {driver::kStreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     kPrecondition, false},
    {driver::kStreamCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     kPrecondition, false},
    {driver::kStreamCaptureImplicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     kPrecondition, false},
    {driver::kInvalidClusterSize, "CUDA_ERROR_INVALID_CLUSTER_SIZE",
     kPrecondition, false},
    {driver::kUnknown, "CUDA_ERROR_UNKNOWN", kAborted, true},
};

ErrorClass Classify(driver::Result result) {
  for (const ErrorClass& error : kErrors) {
    if (error.result == result) return error;
  }
  return {result, "CUDA_ERROR", kInternal, false};
}

}  // namespace

absl::Status CudaStatus(driver::Result result, std::string_view call) {
  if (result == driver::kSuccess) return absl::OkStatus();
  const ErrorClass error = Classify(result);
  absl::Status status(error.code,
                      fmt::format("{} fails ({}, {}).", call, error.name,
                                  static_cast<int>(result)));
  if (error.fatal) status.SetPayload(kFatalPayload, absl::Cord());
  return status;
}

bool IsFatal(const absl::Status& status) {
  return status.GetPayload(kFatalPayload).has_value();
}

std::string_view CudaErrorName(driver::Result result) {
  return Classify(result).name;
}

}  // namespace kiln
