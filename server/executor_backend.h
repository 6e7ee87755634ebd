#ifndef KILN_SERVER_EXECUTOR_BACKEND_H_
#define KILN_SERVER_EXECUTOR_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/execution_backend.h"

namespace kiln {

// The backend of a device's name: "cpu", "cuda:0".
//
// Errors: INVALID_ARGUMENT: no such kind of device; FAILED_PRECONDITION: the
// device, or its driver, is not there.
absl::StatusOr<std::unique_ptr<ExecutionBackend>> CreateBackend(
    const std::string& device);

}  // namespace kiln

#endif  // KILN_SERVER_EXECUTOR_BACKEND_H_
