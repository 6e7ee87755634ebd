#include "server/executor_backend.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "server/cpu_backend.h"
#include "server/cuda_backend.h"

namespace kiln {
namespace {

constexpr std::string_view kCudaPrefix = "cuda:";

// The N of "cuda:N".
std::optional<int> CudaOrdinal(std::string_view device) {
  if (device.substr(0, kCudaPrefix.size()) != kCudaPrefix) return std::nullopt;
  const std::string_view digits = device.substr(kCudaPrefix.size());
  int ordinal = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  const bool whole =
      error == std::errc() && end == digits.data() + digits.size();
  return whole && ordinal >= 0 ? std::optional<int>(ordinal) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutionBackend>> CreateBackend(
    const std::string& device) {
  if (device == "cpu") return std::make_unique<CpuBackend>();
  const std::optional<int> ordinal = CudaOrdinal(device);
  if (ordinal.has_value()) return CreateCudaBackend(*ordinal);
  return absl::InvalidArgumentError(fmt::format(
      "There is no such device (got '{}', allowed: cpu, cuda:N).", device));
}

}  // namespace kiln
