#include "jit/run/loaded_kernel.h"

#include <fmt/format.h>

#include "jit/run/cuda_errors.h"
#include "jit/run/launch_record.h"

namespace kiln {
namespace {

int64_t Product(const std::array<uint32_t, 3>& extents) {
  return int64_t{extents[0]} * extents[1] * extents[2];
}

absl::Status SetAttributes(const DriverTable& driver, const CudaDevice& device,
                           driver::Kernel kernel, const KernelEntry& entry) {
  if (entry.max_dynamic_shared_bytes == 0) return absl::OkStatus();
  return CudaStatus(driver.KernelSetAttribute(
                        driver::kMaxDynamicSharedSizeBytes,
                        static_cast<int>(entry.max_dynamic_shared_bytes),
                        kernel, device.handle),
                    "cuKernelSetAttribute");
}

}  // namespace

absl::StatusOr<LoadedKernel> LoadKernel(const DriverTable& driver,
                                        const CudaDevice& device,
                                        driver::Library library,
                                        const KernelEntry& entry) {
  LoadedKernel loaded;
  absl::Status status = CudaStatus(
      driver.LibraryGetKernel(&loaded.kernel, library, entry.symbol.c_str()),
      "cuLibraryGetKernel");
  if (!status.ok()) return status;
  status = SetAttributes(driver, device, loaded.kernel, entry);
  if (!status.ok()) return status;
  // Under lazy loading this moves the code to the device.
  status = CudaStatus(driver.KernelGetFunction(&loaded.function, loaded.kernel),
                      "cuKernelGetFunction");
  if (!status.ok()) return status;
  return loaded;
}

absl::Status CheckParameters(const DriverTable& driver,
                             const LoadedKernel& kernel, const Step& step) {
  size_t offset = 0;
  size_t size = 0;
  const size_t count = step.args.size();
  for (size_t i = 0; i < count; ++i) {
    const driver::Result result =
        driver.KernelGetParamInfo(kernel.kernel, i, &offset, &size);
    const int64_t given = ParameterBytes(step.args[i]);
    if (result != driver::kSuccess || static_cast<int64_t>(size) != given) {
      return absl::InvalidArgumentError(fmt::format(
          "Argument {} does not fit the kernel ({} bytes given, {} taken).", i,
          given, result == driver::kSuccess ? size : 0));
    }
  }
  if (driver.KernelGetParamInfo(kernel.kernel, count, &offset, &size) ==
      driver::kSuccess) {
    return absl::InvalidArgumentError(fmt::format(
        "The kernel takes more arguments than the record has ({}).", count));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> FitsOnDevice(const DriverTable& driver,
                                  const CudaDevice& device,
                                  const LoadedKernel& kernel,
                                  const Step& step) {
  const int64_t cluster = Product(step.cluster);
  int64_t resident_blocks = 0;
  if (cluster > 1) {
    const StepConfig config(step, device, nullptr);
    int clusters = 0;
    const driver::Result result = driver.OccupancyMaxActiveClusters(
        &clusters, kernel.function, config.get());
    if (result == driver::kInvalidClusterSize) return false;
    absl::Status status = CudaStatus(result, "cuOccupancyMaxActiveClusters");
    if (!status.ok()) return status;
    resident_blocks = clusters * cluster;
  } else {
    int blocks = 0;
    absl::Status status = CudaStatus(
        driver.OccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, kernel.function, static_cast<int>(Product(step.block)),
            step.dynamic_shared_bytes),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    if (!status.ok()) return status;
    resident_blocks = int64_t{blocks} * device.target.sm_count;
  }
  return resident_blocks >= (step.cooperative ? Product(step.grid) : cluster);
}

StepConfig::StepConfig(const Step& step, const CudaDevice& device,
                       driver::Stream stream) {
  unsigned count = 0;
  if (step.cooperative) {
    attributes_[count].id = driver::kCooperative;
    attributes_[count++].value.cooperative = 1;
  }
  if (Product(step.cluster) > 1) {
    attributes_[count].id = driver::kClusterDimension;
    attributes_[count++].value.cluster = {step.cluster[0], step.cluster[1],
                                          step.cluster[2]};
  }
  if (step.programmatic_stream_serialization && device.programmatic_launch) {
    attributes_[count].id = driver::kProgrammaticStreamSerialization;
    attributes_[count++].value.programmatic_stream_serialization = 1;
  }
  config_ = {step.grid[0],
             step.grid[1],
             step.grid[2],
             step.block[0],
             step.block[1],
             step.block[2],
             static_cast<unsigned>(step.dynamic_shared_bytes),
             stream,
             count > 0 ? attributes_ : nullptr,
             count};
}

}  // namespace kiln
