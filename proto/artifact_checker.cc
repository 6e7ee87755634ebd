#include "proto/artifact_checker.h"

#include <fmt/format.h>

#include <limits>

#include "jit/plan/errors.h"

namespace kiln {

void ArtifactChecker::Adopt(const std::string& path,
                            const absl::Status& status) {
  if (!status_.ok() || status.ok()) return;
  ErrorDetail detail = DetailOf(status);
  detail.field = fmt::format("{}.{}", path, detail.field);
  status_ = WithDetail(
      absl::Status(status.code(),
                   fmt::format("{}.{}", path, std::string(status.message()))),
      detail);
}

void ArtifactChecker::Require(bool ok, const std::string& path,
                              std::string_view problem, std::string_view value,
                              std::string_view limit) {
  if (ok || !status_.ok()) return;
  status_ = InvalidField(path, problem, value, limit);
}

int64_t ArtifactChecker::Within(const std::string& path, int64_t value,
                                int64_t min, int64_t max) {
  const bool ok = value >= min && value <= max;
  Require(ok, path, "is out of range", fmt::format("{}", value),
          fmt::format("{} to {}", min, max));
  return ok ? value : min;
}

int64_t ArtifactChecker::Size(const std::string& path, int64_t value) {
  return Within(path, value, 0, std::numeric_limits<int64_t>::max());
}

int ArtifactChecker::Index(const std::string& path, int index, int count) {
  Require(index >= 0 && index < count, path, "names nothing",
          fmt::format("{}", index), fmt::format("0 to {}", count - 1));
  return index;
}

void ArtifactChecker::CheckChoice(const std::string& path, int number,
                                  int last) {
  Require(number != 0, path, "is not set", "0", fmt::format("1 to {}", last));
  if (!status_.ok() || (number >= 1 && number <= last)) return;
  status_ =
      UnknownField(path, "is a value that this build does not know",
                   fmt::format("{}", number), fmt::format("1 to {}", last));
}

}  // namespace kiln
