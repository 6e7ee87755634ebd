#ifndef KILN_CLIENT_CONNECTION_H_
#define KILN_CLIENT_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connect_options.h"
#include "kiln/v1/service.grpc.pb.h"

namespace kiln::client {

// The ErrorDetail field of a protocol mismatch.
inline constexpr char kProtocolField[] = "protocol";

// A gRPC channel to a daemon of our protocol, and its stubs. Not part of the
// public interface. Thread-safe.
class Connection {
 public:
  // Starts a daemon if none answers and the options allow it, and checks the
  // protocol version.
  //
  // Errors: UNAVAILABLE (also: no kilnd to start; a daemon that takes no more
  // connections), PERMISSION_DENIED, DEADLINE_EXCEEDED (also: no answer within
  // options.start_timeout), as StartDaemon and ConnectUnix say;
  // FAILED_PRECONDITION with field "protocol" in the detail: a daemon of
  // another protocol.
  static absl::StatusOr<std::shared_ptr<Connection>> Open(
      ConnectOptions options);

  // Prepares `context` for a unary call or a stream of bounded length.
  // `timeout`, which Finish gets too, 0: the default of the options.
  void Prepare(grpc::ClientContext& context,
               std::chrono::milliseconds timeout = {}) const;

  // One unary call: Call(compiler(), &v1::Compiler::Stub::Validate, request).
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      Stub& stub,
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      const Request& request, std::chrono::milliseconds timeout = {}) const {
    grpc::ClientContext context;
    Prepare(context, timeout);
    Response response;
    const grpc::Status end = (stub.*method)(&context, request, &response);
    const absl::Status status =
        Finish(end, context, Request::descriptor()->name(), timeout);
    if (!status.ok()) return status;
    return response;
  }

  // FromGrpc, with the socket named when the daemon has gone, the limits that
  // make it hang up when it goes before it has greeted, and the call, by the
  // name of its `request`, and its limit when that has passed.
  absl::Status Finish(const grpc::Status& status,
                      const grpc::ClientContext& context,
                      std::string_view request,
                      std::chrono::milliseconds timeout = {}) const;

  v1::Compiler::Stub& compiler() const { return *compiler_; }
  v1::Buffers::Stub& buffers() const { return *buffers_; }
  v1::Executor::Stub& executor() const { return *executor_; }
  v1::Cache::Stub& cache() const { return *cache_; }
  const v1::GetServerInfoResponse& greeting() const { return greeting_; }
  const ConnectOptions& options() const { return options_; }

 private:
  explicit Connection(ConnectOptions options);
  absl::Status Greet();

  const ConnectOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Compiler::Stub> compiler_;
  const std::unique_ptr<v1::Buffers::Stub> buffers_;
  const std::unique_ptr<v1::Executor::Stub> executor_;
  const std::unique_ptr<v1::Cache::Stub> cache_;
  v1::GetServerInfoResponse greeting_;  // as it was when connecting
};

}  // namespace kiln::client

#endif  // KILN_CLIENT_CONNECTION_H_
