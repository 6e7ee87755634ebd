#ifndef KILN_JIT_RUN_LOADED_KERNEL_H_
#define KILN_JIT_RUN_LOADED_KERNEL_H_

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "jit/run/cuda_device.h"
#include "jit/run/driver_table.h"

namespace kiln {

// A kernel in the current context, ready for any launch its entry allows:
// code is on the device and the shared memory limit is set, so that a launch
// inside a graph capture does nothing else. Valid while its library is.
struct LoadedKernel {
  driver::Kernel kernel = nullptr;
  driver::Function function = nullptr;
};

// Finds `entry` in `library`. INTERNAL: no such symbol.
absl::StatusOr<LoadedKernel> LoadKernel(const DriverTable& driver,
                                        const CudaDevice& device,
                                        driver::Library library,
                                        const KernelEntry& entry);

// Checks number and sizes of `step`'s arguments against what the driver reads
// in the cubin (cuKernelGetParamInfo). INVALID_ARGUMENT: they differ.
absl::Status CheckParameters(const DriverTable& driver,
                             const LoadedKernel& kernel, const Step& step);

// Whether all blocks of a cooperative `step`, and at least one cluster of a
// cluster launch, fit on the device at once. The context must be current:
// under MPS or MIG it may own a part of the device only.
absl::StatusOr<bool> FitsOnDevice(const DriverTable& driver,
                                  const CudaDevice& device,
                                  const LoadedKernel& kernel, const Step& step);

// Grid, block and attributes of a launch of `step`. Points into itself: not
// copyable.
class StepConfig {
 public:
  StepConfig(const Step& step, const CudaDevice& device, driver::Stream stream);
  StepConfig(const StepConfig&) = delete;
  StepConfig& operator=(const StepConfig&) = delete;
  const driver::LaunchConfig* get() const { return &config_; }

 private:
  driver::LaunchAttribute attributes_[3] = {};
  driver::LaunchConfig config_ = {};
};

}  // namespace kiln

#endif  // KILN_JIT_RUN_LOADED_KERNEL_H_
