#include "client/cli/tuning_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <vector>

#include "client/cuda_context.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

std::string ListOf(const ServerInfo& info, bool targets) {
  std::vector<std::string> names;
  for (const DeviceDescriptor& device : info.devices) {
    if (device.device == "cpu") continue;
    names.push_back(targets ? device.target : device.device);
  }
  return names.empty() ? "none: this daemon has no GPU"
                       : fmt::format("{}", fmt::join(names, ", "));
}

// The line that the kernel module writes of itself; empty if there is none.
std::string DriverVersion() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

absl::StatusOr<DeviceDescriptor> FindTuningDevice(const ServerInfo& info,
                                                  const std::string& asked,
                                                  const std::string& target) {
  const bool by_target = asked.empty() && !target.empty();
  const std::string device = asked.empty() ? "cuda:0" : asked;
  if (device == "cpu" || target == "cpu") {
    return InvalidField(device == "cpu" ? "--device" : "--target",
                        "the cpu has no schedules to choose from", "cpu",
                        ListOf(info, by_target));
  }
  for (const DeviceDescriptor& descriptor : info.devices) {
    if (by_target ? descriptor.target != target : descriptor.device != device) {
      continue;
    }
    if (target.empty() || descriptor.target == target) {
      return descriptor;
    }
    return InvalidField("--target", "the device has another one", target,
                        descriptor.target);
  }
  return by_target ? InvalidField("--target", "no device of the daemon has it",
                                  target, ListOf(info, true))
                   : InvalidField("--device", "the daemon has no such device",
                                  device, ListOf(info, false));
}

void DescribeDriver(const std::string& uuid, const std::string& cuda_driver,
                    v1::Tuning* tuning) {
  tuning->set_driver(DriverVersion());
  const auto context = client::CudaContext::Open(uuid, cuda_driver);
  if (!context.ok()) return;
  const auto megahertz = [&context](driver::DeviceAttribute attribute) {
    int kilohertz = 0;
    (*context)->driver().DeviceGetAttribute(&kilohertz, attribute,
                                            (*context)->device().handle);
    return kilohertz / 1000;
  };
  tuning->set_clock_mhz(megahertz(driver::kClockRateKhz));
  tuning->set_memory_clock_mhz(megahertz(driver::kMemoryClockRateKhz));
}

}  // namespace kiln::cli
