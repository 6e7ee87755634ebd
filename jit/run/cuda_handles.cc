#include "jit/run/cuda_handles.h"

#include <string>

#include "jit/run/cuda_errors.h"

namespace kiln {

absl::StatusOr<PrimaryContext> PrimaryContext::Retain(const DriverTable& driver,
                                                      driver::Device device) {
  driver::Context context = nullptr;
  if (absl::Status status =
          CudaStatus(driver.DevicePrimaryCtxRetain(&context, device),
                     "cuDevicePrimaryCtxRetain");
      !status.ok()) {
    return status;
  }
  return PrimaryContext(&driver, device, context);
}

PrimaryContext::PrimaryContext(PrimaryContext&& other) noexcept
    : driver_(other.driver_),
      device_(other.device_),
      context_(std::exchange(other.context_, nullptr)) {}

PrimaryContext::~PrimaryContext() {
  if (context_ != nullptr) driver_->DevicePrimaryCtxRelease(device_);
}

CurrentContext::CurrentContext(const DriverTable& driver,
                               driver::Context context)
    : driver_(driver), result_(driver.CtxPushCurrent(context)) {}

CurrentContext::~CurrentContext() {
  driver::Context popped;
  if (result_ == driver::kSuccess) driver_.CtxPopCurrent(&popped);
}

absl::Status CurrentContext::status() const {
  return CudaStatus(result_, "cuCtxPushCurrent");
}

absl::StatusOr<DeviceMemory> DeviceMemory::Allocate(const DriverTable& driver,
                                                    int64_t size_bytes) {
  if (size_bytes == 0) return DeviceMemory();
  driver::DevicePtr address = 0;
  if (absl::Status status =
          CudaStatus(driver.MemAlloc(&address, size_bytes), "cuMemAlloc");
      !status.ok()) {
    return status;
  }
  return DeviceMemory(DeviceAddress(&driver, address), size_bytes);
}

absl::StatusOr<CudaStream> CreateStream(const DriverTable& driver) {
  driver::Stream stream = nullptr;
  if (absl::Status status =
          CudaStatus(driver.StreamCreate(&stream, driver::kStreamNonBlocking),
                     "cuStreamCreate");
      !status.ok()) {
    return status;
  }
  return CudaStream(&driver, stream);
}

absl::StatusOr<CudaEvent> CreateEvent(const DriverTable& driver) {
  driver::Event event = nullptr;
  if (absl::Status status = CudaStatus(
          driver.EventCreate(&event, driver::kEventDefault), "cuEventCreate");
      !status.ok()) {
    return status;
  }
  return CudaEvent(&driver, event);
}

absl::StatusOr<CudaLibrary> LoadLibrary(const DriverTable& driver,
                                        const std::string& cubin) {
  driver::Library library = nullptr;
  if (absl::Status status =
          CudaStatus(driver.LibraryLoadData(&library, cubin.data(), nullptr,
                                            nullptr, 0, nullptr, nullptr, 0),
                     "cuLibraryLoadData");
      !status.ok()) {
    return status;
  }
  return CudaLibrary(&driver, library);
}

}  // namespace kiln
