#include "jit/run/cuda_device.h"

#include <fmt/format.h>

#include <string_view>

#include "jit/run/cuda_errors.h"

namespace kiln {
namespace {

constexpr int kFirstWithProgrammaticGraphs = 12030;

// Reads properties of one device; keeps the first error.
class PropertyReader {
 public:
  PropertyReader(const DriverTable& driver, driver::Device device)
      : driver_(driver), device_(device) {}

  int Attribute(driver::DeviceAttribute attribute) {
    int value = 0;
    Note(driver_.DeviceGetAttribute(&value, attribute, device_),
         "cuDeviceGetAttribute");
    return value;
  }

  std::string Name() {
    char name[256] = {};
    Note(driver_.DeviceGetName(name, sizeof(name) - 1, device_),
         "cuDeviceGetName");
    return name;
  }

  std::string Uuid() {
    driver::Uuid uuid = {};
    Note(driver_.DeviceGetUuid(&uuid, device_), "cuDeviceGetUuid");
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
      text += fmt::format("{:02x}", uuid.bytes[i]);
    }
    return text;
  }

  int64_t MemoryBytes() {
    size_t bytes = 0;
    Note(driver_.DeviceTotalMem(&bytes, device_), "cuDeviceTotalMem");
    return static_cast<int64_t>(bytes);
  }

  // 12040 for CUDA 12.4.
  int DriverVersion() {
    int version = 0;
    Note(driver_.DriverGetVersion(&version), "cuDriverGetVersion");
    return version;
  }

  const absl::Status& status() const { return status_; }

 private:
  void Note(driver::Result result, std::string_view call) {
    status_.Update(CudaStatus(result, call));
  }

  const DriverTable& driver_;
  driver::Device device_;
  absl::Status status_;
};

absl::StatusOr<int> DeviceCount(const DriverTable& driver) {
  int count = 0;
  if (absl::Status status =
          CudaStatus(driver.DeviceGetCount(&count), "cuDeviceGetCount");
      !status.ok()) {
    return status;
  }
  return count;
}

}  // namespace

absl::StatusOr<CudaDevice> DescribeDevice(const DriverTable& driver,
                                          int ordinal) {
  absl::StatusOr<int> count = DeviceCount(driver);
  if (!count.ok()) return count.status();
  if (ordinal < 0 || ordinal >= *count) {
    return absl::FailedPreconditionError(fmt::format(
        "There is no device cuda:{} (the driver finds {}).", ordinal, *count));
  }

  CudaDevice device;
  if (absl::Status status =
          CudaStatus(driver.DeviceGet(&device.handle, ordinal), "cuDeviceGet");
      !status.ok()) {
    return status;
  }
  PropertyReader reader(driver, device.handle);
  device.name = reader.Name();
  device.uuid = reader.Uuid();
  device.memory_bytes = reader.MemoryBytes();
  const int major = reader.Attribute(driver::kComputeCapabilityMajor);
  const int minor = reader.Attribute(driver::kComputeCapabilityMinor);
  device.target = TargetOfDevice(
      major, minor, reader.Attribute(driver::kMultiprocessorCount));
  device.shared_optin_bytes =
      reader.Attribute(driver::kMaxSharedMemoryPerBlockOptin);
  device.cooperative_launch = reader.Attribute(driver::kCooperativeLaunch);
  device.cluster_launch = reader.Attribute(driver::kClusterLaunch);
  device.programmatic_launch =
      major >= 9 && reader.DriverVersion() >= kFirstWithProgrammaticGraphs;
  if (!reader.status().ok()) return reader.status();
  return device;
}

absl::StatusOr<CudaDevice> FindDevice(const DriverTable& driver,
                                      const std::string& uuid) {
  absl::StatusOr<int> count = DeviceCount(driver);
  if (!count.ok()) return count.status();
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    absl::StatusOr<CudaDevice> device = DescribeDevice(driver, ordinal);
    if (!device.ok() || device->uuid == uuid) return device;
  }
  return absl::FailedPreconditionError(
      fmt::format("No device of this process has the UUID {} (of {} devices).",
                  uuid, *count));
}

}  // namespace kiln
