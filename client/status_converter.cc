#include "client/status_converter.h"

#include "jit/plan/errors.h"
#include "kiln/v1/service.pb.h"
#include "proto/protocol.h"

namespace kiln::client {
namespace {

constexpr char kRequestIdUrl[] = "kiln.request_id";

ErrorDetail DetailFromProto(const v1::ErrorDetail& message) {
  ErrorDetail detail;
  detail.field = message.field();
  detail.value = message.value();
  detail.limit = message.limit();
  detail.hint = message.hint();
  detail.compile_log = message.compile_log();
  detail.generated_source = message.generated_source();
  return detail;
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status,
                      const grpc::ClientContext& context) {
  if (status.ok()) return absl::OkStatus();
  const absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                            status.error_message());
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find(kErrorDetailMetadata);
  v1::ErrorDetail message;
  if (found == trailers.end() ||
      !message.ParseFromArray(found->second.data(),
                              static_cast<int>(found->second.size()))) {
    return result;
  }
  absl::Status detailed = WithDetail(result, DetailFromProto(message));
  if (!message.request_id().empty()) {
    detailed.SetPayload(kRequestIdUrl, absl::Cord(message.request_id()));
  }
  return detailed;
}

std::string RequestIdOf(const absl::Status& status) {
  return std::string(status.GetPayload(kRequestIdUrl).value_or(absl::Cord()));
}

}  // namespace kiln::client
