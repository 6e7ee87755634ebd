#include "server/grpc_connection.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>

#include <chrono>

namespace kiln {
namespace {

// A plan of 64 ops takes 10 KiB.
constexpr int kMaxRequestBytes = 1 << 20;
constexpr int kMaxStreams = 64;
// For a peer that sends a first byte and then nothing.
constexpr int kHandshakeTimeoutMs = 10'000;

}  // namespace

GrpcConnection::GrpcConnection(Front& front, const Peer& peer)
    : health_(front.health),
      compiler_(front, peer),
      buffers_(front, peer),
      executor_(front, peer),
      cache_(front, peer) {}

std::unique_ptr<GrpcConnection> GrpcConnection::Serve(Front& front,
                                                      FileDescriptor fd,
                                                      const Peer& peer) {
  std::unique_ptr<GrpcConnection> connection(new GrpcConnection(front, peer));
  grpc::ServerBuilder builder;
  builder.RegisterService(&connection->compiler_);
  builder.RegisterService(&connection->buffers_);
  builder.RegisterService(&connection->executor_);
  builder.RegisterService(&connection->cache_);
  builder.RegisterService(&connection->reflection_);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             kHandshakeTimeoutMs);
  connection->acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  connection->server_ = builder.BuildAndStart();
  if (!connection->server_) return nullptr;
  front.health.Add(connection->server_->GetHealthCheckService());

  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      parameters;
  parameters.fd = fd.Release();
  connection->acceptor_->HandleNewConnection(&parameters);
  return connection;
}

GrpcConnection::~GrpcConnection() {
  if (!server_) return;
  health_.Remove(server_->GetHealthCheckService());
  server_->Shutdown(std::chrono::system_clock::now());
}

void GrpcConnection::StopServing() {
  // For good: a device that recovers is not served any more.
  server_->GetHealthCheckService()->Shutdown();
}

}  // namespace kiln
