#include "client/cli/file_bytes.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

namespace kiln::cli {
namespace {

absl::StatusOr<std::string> ReadAll(const std::string& path, std::istream& file,
                                    std::string_view what,
                                    int64_t limit_bytes) {
  std::string bytes;
  std::string block(size_t{1} << 20, '\0');
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    bytes.append(block, 0, file.gcount());
    if (static_cast<int64_t>(bytes.size()) <= limit_bytes) continue;
    return absl::InvalidArgumentError(
        fmt::format("The file {} is too long for {} (allowed: at most {} "
                    "bytes)",
                    path, what, limit_bytes));
  }
  return bytes;
}

}  // namespace

absl::Status FileError(std::string_view path, std::string_view verb,
                       int error) {
  const std::string message =
      fmt::format("The file {} cannot be {}: {}", path, verb,
                  std::generic_category().message(error));
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(message);
  }
  if (error == ENOENT) return absl::NotFoundError(message);
  return absl::UnknownError(message);
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     std::string_view what,
                                     int64_t limit_bytes) {
  if (path == "-") return ReadAll(path, std::cin, what, limit_bytes);
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return FileError(path, "read", EISDIR);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileError(path, "read", errno);
  return ReadAll(path, file, what, limit_bytes);
}

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? absl::OkStatus() : FileError(path, "written", errno);
}

}  // namespace kiln::cli
