#ifndef KILN_SERVER_HEALTH_BOARD_H_
#define KILN_SERVER_HEALTH_BOARD_H_

#include <grpcpp/health_check_service_interface.h>

#include <map>
#include <set>
#include <string>

#include "cache/mutex.h"

namespace kiln {

// What grpc.health.v1 says of single devices, under the service name
// "kiln.v1.Executor/<device>", on every connection: each has a gRPC server, and
// so a health service, of its own. Thread-safe.
class HealthBoard {
 public:
  // Devices that were never set are not known to the health service.
  void Set(const std::string& device, bool serving);

  // `service` is told what is known and every change, until Remove.
  void Add(grpc::HealthCheckServiceInterface* service);
  void Remove(grpc::HealthCheckServiceInterface* service);

 private:
  Mutex mutex_;
  std::map<std::string, bool> serving_ KILN_GUARDED_BY(mutex_);
  std::set<grpc::HealthCheckServiceInterface*> services_
      KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln

#endif  // KILN_SERVER_HEALTH_BOARD_H_
