#include "client/cli/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "proto/file_descriptor.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

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

absl::Status WriteInPlace(const std::string& path, std::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? absl::OkStatus() : FileError(path, "written", errno);
}

// Its length does not depend on that of the name of `path`.
std::string TemporaryBeside(const std::string& path) {
  return fs::path(path).replace_filename(fmt::format(".kiln-{}.tmp", getpid()));
}

// Errno, or 0.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes.remove_prefix(written);
  }
  return 0;
}

// Writes a file beside `path` and gives it its name, and `mode` if known.
absl::Status Replace(const std::string& path, fs::perms mode,
                     std::string_view bytes) {
  std::error_code error;
  const std::string temporary = TemporaryBeside(path);
  fs::remove(temporary, error);
  FileDescriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.valid() && errno == EACCES) return WriteInPlace(path, bytes);
  if (!file.valid()) return FileError(path, "written", errno);

  int failure = WriteAll(file.get(), bytes);
  if (failure == 0 && close(file.Release()) != 0) failure = errno;
  if (mode != fs::perms::unknown) fs::permissions(temporary, mode, error);
  if (failure == 0 && rename(temporary.c_str(), path.c_str()) != 0) {
    failure = errno;
  }
  if (failure == 0) return absl::OkStatus();
  fs::remove(temporary, error);
  return FileError(path, "written", failure);
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
  if (fs::is_directory(path, error)) {
    return FileError(path, "read", EISDIR);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileError(path, "read", errno);
  return ReadAll(path, file, what, limit_bytes);
}

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return Replace(path, fs::perms::unknown, bytes);
  }
  if (!fs::is_regular_file(status)) return WriteInPlace(path, bytes);
  if (access(path.c_str(), W_OK) == 0) {
    return Replace(path, status.permissions(), bytes);
  }
  return FileError(path, "written", errno);
}

}  // namespace kiln::cli
