#ifndef KILN_JIT_RUN_CUDA_HANDLES_H_
#define KILN_JIT_RUN_CUDA_HANDLES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "jit/run/driver_api.h"
#include "jit/run/driver_table.h"

namespace kiln {

// Move-only owners of driver objects. Each keeps a pointer to the driver
// table, which must outlive it, and gives its object back when destroyed;
// failures to do so are ignored, because only a poisoned context causes them.
// All but PrimaryContext need the context to be current.

// One retain of a device's primary context.
class PrimaryContext {
 public:
  static absl::StatusOr<PrimaryContext> Retain(const DriverTable& driver,
                                               driver::Device device);
  PrimaryContext(PrimaryContext&& other) noexcept;
  PrimaryContext& operator=(PrimaryContext&&) = delete;
  ~PrimaryContext();
  driver::Context get() const { return context_; }
  driver::Device device() const { return device_; }

 private:
  PrimaryContext(const DriverTable* driver, driver::Device device,
                 driver::Context context)
      : driver_(driver), device_(device), context_(context) {}
  const DriverTable* driver_;
  driver::Device device_;
  driver::Context context_;
};

// Makes a context current on this thread for the scope.
class CurrentContext {
 public:
  CurrentContext(const DriverTable& driver, driver::Context context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  absl::Status status() const;

 private:
  const DriverTable& driver_;
  driver::Result result_;
};

// Owner of `Handle`; `Destroy` is the table's entry that gives it back.
template <typename Handle, auto Destroy>
class CudaHandle {
 public:
  CudaHandle() = default;
  CudaHandle(const DriverTable* driver, Handle handle)
      : driver_(driver), handle_(handle) {}
  CudaHandle(CudaHandle&& other) noexcept
      : driver_(other.driver_), handle_(std::exchange(other.handle_, {})) {}
  CudaHandle& operator=(CudaHandle&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudaHandle() {
    if (handle_ != Handle{}) (driver_->*Destroy)(handle_);
  }
  Handle get() const { return handle_; }

 private:
  const DriverTable* driver_ = nullptr;
  Handle handle_ = {};
};

using CudaStream = CudaHandle<driver::Stream, &DriverTable::StreamDestroy>;
using CudaEvent = CudaHandle<driver::Event, &DriverTable::EventDestroy>;
using CudaLibrary = CudaHandle<driver::Library, &DriverTable::LibraryUnload>;
using IpcMapping =
    CudaHandle<driver::DevicePtr, &DriverTable::IpcCloseMemHandle>;
using DeviceAddress = CudaHandle<driver::DevicePtr, &DriverTable::MemFree>;

// Memory of the device; empty for zero bytes. Addresses are aligned to 256
// bytes (CUDA C++ Programming Guide, "Device Memory Accesses").
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static absl::StatusOr<DeviceMemory> Allocate(const DriverTable& driver,
                                               int64_t size_bytes);
  driver::DevicePtr get() const { return address_.get(); }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  DeviceMemory(DeviceAddress address, int64_t size_bytes)
      : address_(std::move(address)), size_bytes_(size_bytes) {}
  DeviceAddress address_;
  int64_t size_bytes_ = 0;
};

// A stream that does not synchronise with the legacy default stream.
absl::StatusOr<CudaStream> CreateStream(const DriverTable& driver);

// An event that records time.
absl::StatusOr<CudaEvent> CreateEvent(const DriverTable& driver);

// Loads a cubin. FAILED_PRECONDITION: not for this device.
absl::StatusOr<CudaLibrary> LoadLibrary(const DriverTable& driver,
                                        const std::string& cubin);

}  // namespace kiln

#endif  // KILN_JIT_RUN_CUDA_HANDLES_H_
