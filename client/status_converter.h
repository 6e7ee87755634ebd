#ifndef KILN_CLIENT_STATUS_CONVERTER_H_
#define KILN_CLIENT_STATUS_CONVERTER_H_

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"

namespace kiln::client {

// The status of a finished call, with the ErrorDetail of its trailer attached
// (DetailOf). The one place where gRPC's codes become absl's.
absl::Status FromGrpc(const grpc::Status& status,
                      const grpc::ClientContext& context);

}  // namespace kiln::client

#endif  // KILN_CLIENT_STATUS_CONVERTER_H_
