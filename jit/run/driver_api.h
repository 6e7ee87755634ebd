#ifndef KILN_JIT_RUN_DRIVER_API_H_
#define KILN_JIT_RUN_DRIVER_API_H_

#include <cstddef>
#include <cstdint>

// The part of the CUDA driver API that Kiln uses, declared here so that it
// builds without the CUDA toolkit. Names, values and layouts are those of the
// "CUDA Driver API" reference, 12.4 and later. The handle tags are CUDA's own:
// a CUstream of <cuda.h> is a kiln::driver::Stream.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUlib_st;
struct CUkern_st;
struct CUfunc_st;

namespace kiln::driver {

using Context = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Library = CUlib_st*;
using Kernel = CUkern_st*;
using Function = CUfunc_st*;
using Device = int;
using DevicePtr = unsigned long long;

// CUresult. Only the codes that Kiln tells apart have a name.
enum Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kMapFailed = 205,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kNvlinkUncorrectable = 220,
  kContained = 226,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kNotFound = 500,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kCooperativeLaunchTooLarge = 720,
  kTensorMemoryLeak = 721,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kMpsConnectionFailed = 805,
  kMpsRpcFailure = 806,
  kMpsServerNotReady = 807,
  kMpsClientTerminated = 810,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureImplicit = 906,
  kInvalidClusterSize = 912,
  kUnknown = 999,
};

// CUdevice_attribute.
enum DeviceAttribute : int {
  kClockRateKhz = 13,
  kMultiprocessorCount = 16,
  kMemoryClockRateKhz = 36,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kCooperativeLaunch = 95,
  kMaxSharedMemoryPerBlockOptin = 97,
  kClusterLaunch = 120,
};

// CUfunction_attribute.
enum FunctionAttribute : int {
  kSharedSizeBytes = 1,
  kLocalSizeBytes = 3,
  kNumRegs = 4,
  kMaxDynamicSharedSizeBytes = 8,
  kNonPortableClusterSizeAllowed = 14,
};

// CUstream_flags, CUevent_flags, CUipcMem_flags.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kIpcLazyEnablePeerAccess = 1;

// CUstreamCaptureStatus.
enum CaptureStatus : int { kNotCapturing = 0 };

struct Uuid {
  unsigned char bytes[16];
};

struct IpcMemHandle {
  unsigned char reserved[64];
};

struct alignas(128) TensorMap {
  uint64_t opaque[16];
};

// CUlaunchAttributeID.
enum LaunchAttributeId : int {
  kCooperative = 2,
  kClusterDimension = 4,
  kProgrammaticStreamSerialization = 6,
};

struct LaunchAttribute {
  LaunchAttributeId id;
  char pad[4];
  union {
    char size[64];
    int cooperative;
    int programmatic_stream_serialization;
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

}  // namespace kiln::driver

#endif  // KILN_JIT_RUN_DRIVER_API_H_
