#include "jit/run/ipc_memory.h"

#include <fmt/format.h>

#include <cstring>

#include "jit/run/cuda_errors.h"

namespace kiln {
namespace {

// What the driver refuses because of the handle is the caller's fault.
absl::Status HandleStatus(driver::Result result, std::string_view call) {
  absl::Status status = CudaStatus(result, call);
  if (status.ok() || IsFatal(status) || absl::IsResourceExhausted(status)) {
    return status;
  }
  return absl::InvalidArgumentError(
      fmt::format("The memory cannot be shared by CUDA IPC ({} gives {}).",
                  call, CudaErrorName(result)));
}

}  // namespace

absl::StatusOr<ExportedMemory> ExportMemory(const DriverTable& driver,
                                            driver::DevicePtr address) {
  driver::DevicePtr base = 0;
  size_t size = 0;
  absl::Status status = HandleStatus(
      driver.MemGetAddressRange(&base, &size, address), "cuMemGetAddressRange");
  if (!status.ok()) return status;
  driver::IpcMemHandle handle;
  status =
      HandleStatus(driver.IpcGetMemHandle(&handle, base), "cuIpcGetMemHandle");
  if (!status.ok()) return status;
  return ExportedMemory{
      std::string(reinterpret_cast<const char*>(handle.reserved),
                  sizeof(handle.reserved)),
      static_cast<int64_t>(address - base), static_cast<int64_t>(size)};
}

absl::StatusOr<ImportedMemory> ImportMemory(const DriverTable& driver,
                                            const std::string& handle) {
  driver::IpcMemHandle raw;
  if (handle.size() != sizeof(raw.reserved)) {
    return absl::InvalidArgumentError(
        fmt::format("A CUDA IPC handle has {} bytes ({} given).",
                    sizeof(raw.reserved), handle.size()));
  }
  std::memcpy(raw.reserved, handle.data(), handle.size());
  driver::DevicePtr address = 0;
  absl::Status status = HandleStatus(
      driver.IpcOpenMemHandle(&address, raw, driver::kIpcLazyEnablePeerAccess),
      "cuIpcOpenMemHandle");
  if (!status.ok()) return status;
  ImportedMemory memory{IpcMapping(&driver, address), 0};

  driver::DevicePtr base = 0;
  size_t size = 0;
  status = CudaStatus(driver.MemGetAddressRange(&base, &size, address),
                      "cuMemGetAddressRange");
  if (!status.ok()) return status;
  memory.size_bytes = static_cast<int64_t>(size - (address - base));
  return memory;
}

}  // namespace kiln
