#include "client/connection.h"

#include <fmt/format.h>

#include <utility>

#include "client/start_daemon.h"
#include "client/status_converter.h"
#include "client/unix_socket.h"
#include "jit/plan/errors.h"
#include "proto/protocol.h"

namespace kiln::client {
namespace {

// Artifacts carry cubins and, on request, sources: well below this.
constexpr int kMaxMessageBytes = 256 << 20;
// Of ErrorDetail: a compile log (64 KiB) and a generated source. As base64 it
// grows by a third, which the metadata limit leaves room for.
constexpr int kDetailLimitBytes = 512 << 10;
constexpr int kMaxMetadataBytes = 1 << 20;

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  // Each client has a connection of its own: a session belongs to it.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(
      "unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status OtherProtocol(const ConnectOptions& options,
                           const v1::GetServerInfoResponse& server) {
  const std::string hint = fmt::format(
      "Stop it (kill {}) and let the client start one of its own version, or "
      "choose another socket",
      server.pid());
  ErrorDetail detail;
  detail.field = kProtocolField;
  detail.value = std::to_string(server.protocol());
  detail.limit = std::to_string(kProtocolVersion);
  detail.hint = hint;
  return WithDetail(absl::FailedPreconditionError(fmt::format(
                        "The kilnd {} on {} speaks protocol {}, this client {}",
                        server.version(), options.socket, server.protocol(),
                        kProtocolVersion)),
                    detail);
}

absl::Status Probe(const ConnectOptions& options) {
  return ConnectUnix(options.socket, options.start_timeout).status();
}

// A daemon refuses a connection by closing it, before a word is said.
absl::Status HungUp(const ConnectOptions& options, const std::string& cause) {
  ErrorDetail detail;
  detail.hint = "Look at its log";
  const absl::Status status = absl::UnavailableError(fmt::format(
      "The kilnd on {} takes the connection and closes it at once: it is at "
      "its limit of connections (--max-connections, 512 unless set), out of "
      "descriptors, or it stops just now; its log says which ({})",
      options.socket, cause));
  return WithDetail(status, detail);
}

}  // namespace

Connection::Connection(ConnectOptions options)
    : options_(std::move(options)),
      channel_(OpenChannel(options_.socket)),
      compiler_(v1::Compiler::NewStub(channel_)),
      buffers_(v1::Buffers::NewStub(channel_)),
      executor_(v1::Executor::NewStub(channel_)),
      cache_(v1::Cache::NewStub(channel_)) {}

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(
    ConnectOptions options) {
  absl::Status reachable = Probe(options);
  if (absl::IsUnavailable(reachable) && options.auto_start) {
    reachable = StartDaemon(options);
  }
  if (!reachable.ok()) return reachable;
  std::shared_ptr<Connection> connection(new Connection(std::move(options)));
  const absl::Status greeted = connection->Greet();
  if (greeted.ok()) return connection;
  if (absl::IsUnavailable(greeted)) {
    // gRPC waits for no room in the daemon's queue.
    reachable = Probe(connection->options());
    if (absl::IsDeadlineExceeded(reachable)) return reachable;
  }
  return greeted;
}

absl::Status Connection::Greet() {
  absl::StatusOr<v1::GetServerInfoResponse> server =
      Call(compiler(), &v1::Compiler::Stub::GetServerInfo,
           v1::GetServerInfoRequest(), options_.start_timeout);
  if (!server.ok()) return server.status();
  if (server->protocol() != kProtocolVersion) {
    return OtherProtocol(options_, *server);
  }
  greeting_ = *std::move(server);
  return absl::OkStatus();
}

void Connection::Prepare(grpc::ClientContext& context,
                         std::chrono::milliseconds timeout) const {
  if (timeout.count() == 0) timeout = options_.call_timeout;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  context.AddMetadata(kDetailLimitMetadata, std::to_string(kDetailLimitBytes));
}

absl::Status Connection::Finish(const grpc::Status& status,
                                const grpc::ClientContext& context,
                                std::string_view request,
                                std::chrono::milliseconds timeout) const {
  const absl::Status result = FromGrpc(status, context);
  const bool explained = !context.GetServerTrailingMetadata().empty();
  if (explained) return result;
  if (absl::IsDeadlineExceeded(result)) {
    if (timeout.count() == 0) timeout = options_.call_timeout;
    return absl::DeadlineExceededError(fmt::format(
        "kilnd on {} does not answer the {} before the call's deadline ({} ms)",
        options_.socket, request, timeout.count()));
  }
  if (!absl::IsUnavailable(result)) return result;
  const bool greeted = greeting_.protocol() != 0;
  if (!greeted) return HungUp(options_, std::string(result.message()));
  return absl::UnavailableError(
      fmt::format("The connection to kilnd on {} is lost: {}", options_.socket,
                  std::string(result.message())));
}

}  // namespace kiln::client
