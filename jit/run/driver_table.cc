#include "jit/run/driver_table.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "absl/status/status.h"
#include "jit/run/cuda_errors.h"

namespace kiln {
namespace {

// Fills table entries and remembers the first symbol that is missing.
class SymbolReader {
 public:
  explicit SymbolReader(void* library) : library_(library) {}

  template <typename Function>
  void Read(const char* symbol, Function& function) {
    void* address = dlsym(library_, symbol);
    if (address == nullptr && missing_.empty()) missing_ = symbol;
    function = reinterpret_cast<Function>(address);
  }

  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void ReadDevices(SymbolReader& reader, DriverTable& table) {
  reader.Read("cuInit", table.Init);
  reader.Read("cuDriverGetVersion", table.DriverGetVersion);
  reader.Read("cuDeviceGetCount", table.DeviceGetCount);
  reader.Read("cuDeviceGet", table.DeviceGet);
  reader.Read("cuDeviceGetName", table.DeviceGetName);
  reader.Read("cuDeviceGetUuid_v2", table.DeviceGetUuid);
  reader.Read("cuDeviceTotalMem_v2", table.DeviceTotalMem);
  reader.Read("cuDeviceGetAttribute", table.DeviceGetAttribute);
  reader.Read("cuDevicePrimaryCtxRetain", table.DevicePrimaryCtxRetain);
  reader.Read("cuDevicePrimaryCtxRelease_v2", table.DevicePrimaryCtxRelease);
  reader.Read("cuCtxPushCurrent_v2", table.CtxPushCurrent);
  reader.Read("cuCtxPopCurrent_v2", table.CtxPopCurrent);
  reader.Read("cuCtxSynchronize", table.CtxSynchronize);
}

void ReadKernels(SymbolReader& reader, DriverTable& table) {
  reader.Read("cuLibraryLoadData", table.LibraryLoadData);
  reader.Read("cuLibraryUnload", table.LibraryUnload);
  reader.Read("cuLibraryGetKernel", table.LibraryGetKernel);
  reader.Read("cuKernelGetFunction", table.KernelGetFunction);
  reader.Read("cuKernelGetAttribute", table.KernelGetAttribute);
  reader.Read("cuKernelSetAttribute", table.KernelSetAttribute);
  reader.Read("cuKernelGetParamInfo", table.KernelGetParamInfo);
  reader.Read("cuOccupancyMaxActiveBlocksPerMultiprocessor",
              table.OccupancyMaxActiveBlocksPerMultiprocessor);
  reader.Read("cuOccupancyMaxActiveClusters", table.OccupancyMaxActiveClusters);
  reader.Read("cuLaunchKernelEx", table.LaunchKernelEx);
  reader.Read("cuTensorMapEncodeTiled", table.TensorMapEncodeTiled);
}

void ReadMemory(SymbolReader& reader, DriverTable& table) {
  reader.Read("cuMemGetInfo_v2", table.MemGetInfo);
  reader.Read("cuMemAlloc_v2", table.MemAlloc);
  reader.Read("cuMemFree_v2", table.MemFree);
  reader.Read("cuMemGetAddressRange_v2", table.MemGetAddressRange);
  reader.Read("cuMemcpyHtoDAsync_v2", table.MemcpyHtoDAsync);
  reader.Read("cuMemcpyDtoHAsync_v2", table.MemcpyDtoHAsync);
  reader.Read("cuMemsetD8Async", table.MemsetD8Async);
  reader.Read("cuIpcGetMemHandle", table.IpcGetMemHandle);
  reader.Read("cuIpcOpenMemHandle_v2", table.IpcOpenMemHandle);
  reader.Read("cuIpcCloseMemHandle", table.IpcCloseMemHandle);
}

void ReadStreams(SymbolReader& reader, DriverTable& table) {
  reader.Read("cuStreamCreate", table.StreamCreate);
  reader.Read("cuStreamDestroy_v2", table.StreamDestroy);
  reader.Read("cuStreamSynchronize", table.StreamSynchronize);
  reader.Read("cuStreamIsCapturing", table.StreamIsCapturing);
  reader.Read("cuEventCreate", table.EventCreate);
  reader.Read("cuEventDestroy_v2", table.EventDestroy);
  reader.Read("cuEventRecord", table.EventRecord);
  reader.Read("cuEventSynchronize", table.EventSynchronize);
  reader.Read("cuEventElapsedTime", table.EventElapsedTime);
}

}  // namespace

absl::StatusOr<DriverTable> DriverTable::Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(fmt::format(
        "The CUDA driver cannot be loaded ({}); is one installed?", dlerror()));
  }

  DriverTable table;
  SymbolReader reader(library);
  ReadDevices(reader, table);
  ReadKernels(reader, table);
  ReadMemory(reader, table);
  ReadStreams(reader, table);
  if (!reader.missing().empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "The CUDA driver {} lacks {}; CUDA 12.4 or newer is needed.", path,
        reader.missing()));
  }

  if (absl::Status status = CudaStatus(table.Init(0), "cuInit"); !status.ok()) {
    return status;
  }
  return table;
}

}  // namespace kiln
