#ifndef KILN_CLIENT_CLI_TUNING_DEVICE_H_
#define KILN_CLIENT_CLI_TUNING_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "kiln/v1/service.pb.h"

namespace kiln::cli {

// The GPU of the daemon to measure on: `device`, cuda:0 if that is empty; or,
// without a `device`, the first with the resolved `target`, if that is given.
//
// Errors: INVALID_ARGUMENT naming the option, its value and what the daemon
// has: no such GPU, one with another target, or the cpu.
absl::StatusOr<DeviceDescriptor> FindTuningDevice(const ServerInfo& info,
                                                  const std::string& device,
                                                  const std::string& target);

// Writes into `tuning` what the system says of the driver, and the driver of
// the device's clocks. What is not known stays empty.
void DescribeDriver(const std::string& uuid, const std::string& cuda_driver,
                    v1::Tuning* tuning);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_TUNING_DEVICE_H_
