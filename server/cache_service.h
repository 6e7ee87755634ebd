#ifndef KILN_SERVER_CACHE_SERVICE_H_
#define KILN_SERVER_CACHE_SERVICE_H_

#include "kiln/v1/service.grpc.pb.h"
#include "server/front.h"
#include "server/listen_socket.h"

namespace kiln {

// kiln.v1.Cache for one connection. Contract: proto/kiln/v1/service.proto.
class CacheService final : public v1::Cache::CallbackService {
 public:
  CacheService(Front& front, const Peer& peer);

  grpc::ServerUnaryReactor* Stats(grpc::CallbackServerContext* context,
                                  const v1::CacheStatsRequest* request,
                                  v1::CacheStatsResponse* response) override;
  grpc::ServerWriteReactor<v1::CacheEntry>* List(
      grpc::CallbackServerContext* context,
      const v1::CacheListRequest* request) override;
  grpc::ServerUnaryReactor* Show(grpc::CallbackServerContext* context,
                                 const v1::CacheShowRequest* request,
                                 v1::CacheShowResponse* response) override;
  grpc::ServerWriteReactor<v1::CacheVerifyEvent>* Verify(
      grpc::CallbackServerContext* context,
      const v1::CacheVerifyRequest* request) override;
  grpc::ServerUnaryReactor* Gc(grpc::CallbackServerContext* context,
                               const v1::CacheGcRequest* request,
                               v1::CacheGcResponse* response) override;
  grpc::ServerUnaryReactor* Purge(grpc::CallbackServerContext* context,
                                  const v1::CachePurgeRequest* request,
                                  v1::CachePurgeResponse* response) override;

 private:
  Front& front_;
  const Peer peer_;
};

}  // namespace kiln

#endif  // KILN_SERVER_CACHE_SERVICE_H_
