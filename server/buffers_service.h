#ifndef KILN_SERVER_BUFFERS_SERVICE_H_
#define KILN_SERVER_BUFFERS_SERVICE_H_

#include "kiln/v1/service.grpc.pb.h"
#include "server/front.h"
#include "server/listen_socket.h"

namespace kiln {

// kiln.v1.Buffers for one connection. Contract: proto/kiln/v1/service.proto.
class BuffersService final : public v1::Buffers::CallbackService {
 public:
  BuffersService(Front& front, const Peer& peer);

  grpc::ServerWriteReactor<v1::SessionEvent>* Attach(
      grpc::CallbackServerContext* context,
      const v1::AttachRequest* request) override;
  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::RegisterRequest* request,
                                     v1::RegisterResponse* response) override;
  grpc::ServerUnaryReactor* Unregister(
      grpc::CallbackServerContext* context,
      const v1::UnregisterRequest* request,
      v1::UnregisterResponse* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListBuffersRequest* request,
                                 v1::ListBuffersResponse* response) override;

 private:
  Front& front_;
  const Peer peer_;
};

}  // namespace kiln

#endif  // KILN_SERVER_BUFFERS_SERVICE_H_
