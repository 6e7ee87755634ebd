#ifndef KILN_SERVER_PROCESS_CONVERTER_H_
#define KILN_SERVER_PROCESS_CONVERTER_H_

#include <chrono>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "jit/compile/compile_request.h"
#include "server/execution_backend.h"
#include "server/ipc.pb.h"

namespace kiln {

// Conversions between what processes say to each other and what it means.
// From a message they are total: the other side is not trusted to be sane.

// `status` must not be ok. Texts are cut to what a reply can carry.
ipc::Failure ToProto(const absl::Status& status);
// A code that is no error code becomes INTERNAL.
absl::Status FromProto(const ipc::Failure& failure);

ipc::CompileJob ToProto(const CompileRequest& request,
                        std::chrono::milliseconds soft_deadline);
// Canonicalises the plan anew, so that a request is never half-checked.
absl::StatusOr<CompileRequest> FromProto(const ipc::CompileJob& job);

ipc::Described ToProto(const DeviceDescription& description);
absl::StatusOr<DeviceDescription> FromProto(const ipc::Described& message);

}  // namespace kiln

#endif  // KILN_SERVER_PROCESS_CONVERTER_H_
