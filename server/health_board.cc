#include "server/health_board.h"

namespace kiln {
namespace {

constexpr char kPrefix[] = "kiln.v1.Executor/";

}  // namespace

void HealthBoard::Set(const std::string& device, bool serving) {
  MutexLock lock(mutex_);
  serving_[kPrefix + device] = serving;
  for (grpc::HealthCheckServiceInterface* service : services_) {
    service->SetServingStatus(kPrefix + device, serving);
  }
}

void HealthBoard::Add(grpc::HealthCheckServiceInterface* service) {
  MutexLock lock(mutex_);
  services_.insert(service);
  for (const auto& [name, serving] : serving_) {
    service->SetServingStatus(name, serving);
  }
}

void HealthBoard::Remove(grpc::HealthCheckServiceInterface* service) {
  MutexLock lock(mutex_);
  services_.erase(service);
}

}  // namespace kiln
