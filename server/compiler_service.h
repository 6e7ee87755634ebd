#ifndef KILN_SERVER_COMPILER_SERVICE_H_
#define KILN_SERVER_COMPILER_SERVICE_H_

#include "kiln/v1/service.grpc.pb.h"
#include "server/front.h"
#include "server/listen_socket.h"

namespace kiln {

// kiln.v1.Compiler for one connection. Contract: proto/kiln/v1/service.proto.
class CompilerService final : public v1::Compiler::CallbackService {
 public:
  CompilerService(Front& front, const Peer& peer);

  grpc::ServerUnaryReactor* Validate(grpc::CallbackServerContext* context,
                                     const v1::ValidateRequest* request,
                                     v1::ValidateResponse* response) override;
  grpc::ServerUnaryReactor* Compile(grpc::CallbackServerContext* context,
                                    const v1::CompileRequest* request,
                                    v1::CompileResponse* response) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* StoreTuning(
      grpc::CallbackServerContext* context,
      const v1::StoreTuningRequest* request,
      v1::StoreTuningResponse* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(
      grpc::CallbackServerContext* context,
      const v1::GetServerInfoRequest* request,
      v1::GetServerInfoResponse* response) override;

 private:
  Front& front_;
  const Peer peer_;
};

}  // namespace kiln

#endif  // KILN_SERVER_COMPILER_SERVICE_H_
