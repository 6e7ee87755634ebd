#include "client/cuda_memory.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "jit/plan/errors.h"
#include "jit/run/cuda_errors.h"

namespace kiln::client {
namespace {

constexpr int64_t kGranuleBytes = int64_t{2} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 48;  // of an address space

}  // namespace

absl::Status CheckFits(size_t bytes, int64_t size_bytes) {
  if (bytes <= static_cast<size_t>(size_bytes)) return absl::OkStatus();
  return InvalidField("bytes", "more than the buffer holds",
                      std::to_string(bytes),
                      fmt::format("at most {}", size_bytes));
}

absl::StatusOr<CudaMemory> CudaMemory::Allocate(
    std::shared_ptr<const CudaContext> context, int64_t size_bytes) {
  if (size_bytes <= 0 || size_bytes > kMostBytes) {
    return InvalidField("size_bytes", "no such memory can be made",
                        std::to_string(size_bytes),
                        fmt::format("1 to {}", kMostBytes));
  }
  const CurrentContext current(context->driver(), context->get());
  if (!current.status().ok()) return current.status();
  const int64_t granules = (size_bytes + kGranuleBytes - 1) / kGranuleBytes;
  absl::StatusOr<DeviceMemory> owned =
      DeviceMemory::Allocate(context->driver(), granules * kGranuleBytes);
  if (!owned.ok()) return owned.status();
  CudaMemory memory(std::move(context), owned->get(), size_bytes);
  memory.owned_ = *std::move(owned);
  return memory;
}

CudaMemory::CudaMemory(std::shared_ptr<const CudaContext> context,
                       driver::DevicePtr address, int64_t size_bytes)
    : context_(std::move(context)),
      address_(address),
      size_bytes_(size_bytes) {}

CudaMemory::~CudaMemory() {
  if (owned_.get() == 0) return;
  const CurrentContext current(context_->driver(), context_->get());
  owned_ = DeviceMemory();
}

absl::StatusOr<ExportedMemory> CudaMemory::Export() const {
  const CurrentContext current(context_->driver(), context_->get());
  if (!current.status().ok()) return current.status();
  return ExportMemory(context_->driver(), address_);
}

absl::Status CudaMemory::CopyFrom(std::span<const std::byte> bytes) const {
  const DriverTable& driver = context_->driver();
  const CurrentContext current(driver, context_->get());
  absl::Status status = CheckFits(bytes.size(), size_bytes_);
  status.Update(current.status());
  if (!status.ok()) return status;
  status = CudaStatus(
      driver.MemcpyHtoDAsync(address_, bytes.data(), bytes.size(), nullptr),
      "cuMemcpyHtoDAsync");
  status.Update(
      CudaStatus(driver.StreamSynchronize(nullptr), "cuStreamSynchronize"));
  return status;
}

absl::Status CudaMemory::CopyTo(std::span<std::byte> bytes) const {
  const DriverTable& driver = context_->driver();
  const CurrentContext current(driver, context_->get());
  absl::Status status = CheckFits(bytes.size(), size_bytes_);
  status.Update(current.status());
  if (!status.ok()) return status;
  status = CudaStatus(
      driver.MemcpyDtoHAsync(bytes.data(), address_, bytes.size(), nullptr),
      "cuMemcpyDtoHAsync");
  status.Update(
      CudaStatus(driver.StreamSynchronize(nullptr), "cuStreamSynchronize"));
  return status;
}

}  // namespace kiln::client
