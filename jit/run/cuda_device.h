#ifndef KILN_JIT_RUN_CUDA_DEVICE_H_
#define KILN_JIT_RUN_CUDA_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "jit/artifact/target.h"
#include "jit/run/driver_table.h"

namespace kiln {

// What the driver says of one device. A value.
struct CudaDevice {
  driver::Device handle = 0;
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string uuid;  // "GPU-" and 32 hex digits in five groups
  Target target;     // what artifacts for it must be compiled for
  int64_t memory_bytes = 0;
  int64_t shared_optin_bytes = 0;  // the most dynamic shared memory of a block
  bool cooperative_launch = false;
  bool cluster_launch = false;
  // Launches may overlap, recorded in graphs too: a driver of CUDA 12.3 and up.
  bool programmatic_launch = false;
};

// Errors: FAILED_PRECONDITION if there is no device number `ordinal`.
absl::StatusOr<CudaDevice> DescribeDevice(const DriverTable& driver,
                                          int ordinal);

// The device whose uuid is `uuid`. FAILED_PRECONDITION: not on this host, or
// hidden by CUDA_VISIBLE_DEVICES.
absl::StatusOr<CudaDevice> FindDevice(const DriverTable& driver,
                                      const std::string& uuid);

}  // namespace kiln

#endif  // KILN_JIT_RUN_CUDA_DEVICE_H_
