#ifndef KILN_SERVER_STATUS_CONVERTER_H_
#define KILN_SERVER_STATUS_CONVERTER_H_

#include <grpcpp/support/status.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kiln/v1/service.pb.h"

namespace kiln {

// The codes of absl and gRPC are the same numbers.
grpc::Status ToGrpc(const absl::Status& status);

// What DetailOf(status) says, and the call's id, in at most about
// `limit_bytes`: generated source goes first, then the log's middle.
v1::ErrorDetail DetailToProto(const absl::Status& status,
                              std::string_view request_id, size_t limit_bytes);

}  // namespace kiln

#endif  // KILN_SERVER_STATUS_CONVERTER_H_
