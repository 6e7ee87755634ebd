#ifndef KILN_CLIENT_STATUS_CONVERTER_H_
#define KILN_CLIENT_STATUS_CONVERTER_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"

namespace kiln::client {

// The status of a finished call, with the ErrorDetail of its trailer attached
// (DetailOf). The one place where gRPC's codes become absl's.
absl::Status FromGrpc(const grpc::Status& status,
                      const grpc::ClientContext& context);

// The id of the call that failed, as the daemon's log has it; empty if it did
// not get that far.
std::string RequestIdOf(const absl::Status& status);

}  // namespace kiln::client

#endif  // KILN_CLIENT_STATUS_CONVERTER_H_
