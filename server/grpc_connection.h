#ifndef KILN_SERVER_GRPC_CONNECTION_H_
#define KILN_SERVER_GRPC_CONNECTION_H_

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>

#include "server/accept_loop.h"
#include "server/buffers_service.h"
#include "server/cache_service.h"
#include "server/compiler_service.h"
#include "server/executor_service.h"
#include "server/front.h"
#include "server/reflection_service.h"

namespace kiln {

// One accepted connection and the gRPC server that serves nothing else, so
// that its services know their peer. All services use the callback API: no
// thread belongs to a connection.
class GrpcConnection final : public Connection {
 public:
  // Null if gRPC refuses to start.
  static std::unique_ptr<GrpcConnection> Serve(Front& front, FileDescriptor fd,
                                               const Peer& peer);
  // Cancels the calls under way and waits for their end.
  ~GrpcConnection() override;

  void StopServing() override;

 private:
  GrpcConnection(Front& front, const Peer& peer);

  HealthBoard& health_;
  CompilerService compiler_;
  BuffersService buffers_;
  ExecutorService executor_;
  CacheService cache_;
  ReflectionService reflection_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace kiln

#endif  // KILN_SERVER_GRPC_CONNECTION_H_
