#ifndef KILN_SERVER_EXECUTOR_SERVICE_H_
#define KILN_SERVER_EXECUTOR_SERVICE_H_

#include "kiln/v1/service.grpc.pb.h"
#include "server/front.h"
#include "server/listen_socket.h"

namespace kiln {

// kiln.v1.Executor for one connection. Contract: proto/kiln/v1/service.proto.
class ExecutorService final : public v1::Executor::CallbackService {
 public:
  ExecutorService(Front& front, const Peer& peer);

  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context,
                                    const v1::ExecuteRequest* request,
                                    v1::ExecuteResponse* response) override;

 private:
  Front& front_;
  const Peer peer_;
};

}  // namespace kiln

#endif  // KILN_SERVER_EXECUTOR_SERVICE_H_
