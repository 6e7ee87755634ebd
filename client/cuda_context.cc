#include "client/cuda_context.h"

#include <utility>

namespace kiln::client {

CudaContext::CudaContext(std::unique_ptr<const DriverTable> driver,
                         CudaDevice device, PrimaryContext context)
    : driver_(std::move(driver)),
      device_(std::move(device)),
      context_(std::move(context)) {}

absl::StatusOr<std::shared_ptr<const CudaContext>> CudaContext::Open(
    const std::string& uuid, const std::string& driver_path) {
  const absl::StatusOr<DriverTable> table = DriverTable::Load(driver_path);
  if (!table.ok()) return table.status();
  auto driver = std::make_unique<const DriverTable>(*table);
  absl::StatusOr<CudaDevice> device = FindDevice(*driver, uuid);
  if (!device.ok()) return device.status();
  absl::StatusOr<PrimaryContext> context =
      PrimaryContext::Retain(*driver, device->handle);
  if (!context.ok()) return context.status();
  return std::shared_ptr<const CudaContext>(new CudaContext(
      std::move(driver), *std::move(device), *std::move(context)));
}

}  // namespace kiln::client
