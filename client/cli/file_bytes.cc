#include "client/cli/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "proto/file_descriptor.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> ReadAll(const std::string& path, int fd,
                                    std::string_view what,
                                    int64_t limit_bytes) {
  std::string bytes;
  std::string block(size_t{1} << 20, '\0');
  for (;;) {
    const ssize_t size = read(fd, block.data(), block.size());
    if (size == 0) return bytes;
    if (size < 0 && errno != EINTR) return FileError(path, "read", errno);
    if (size > 0) bytes.append(block, 0, size);
    if (static_cast<int64_t>(bytes.size()) > limit_bytes) break;
  }
  return absl::InvalidArgumentError(
      fmt::format("The file {} is too long for {} (allowed: at most {} bytes)",
                  path, what, limit_bytes));
}

absl::Status WriteInPlace(const std::string& path, std::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? absl::OkStatus() : FileError(path, "written", errno);
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

// Whether it says that the folder, rather than the file, may not be changed.
bool IsOfFolder(int error) {
  return error == EACCES || error == EPERM || error == EROFS || error == EBUSY;
}

// All of it on disk, and the mode if known. Errno, or 0.
int Fill(FileDescriptor file, std::optional<mode_t> mode,
         std::string_view bytes) {
  if (mode.has_value() && fchmod(file.get(), *mode) != 0) return errno;
  const int failure = WriteAll(file.get(), bytes);
  if (failure != 0) return failure;
  if (fdatasync(file.get()) != 0) return errno;
  return close(file.Release()) == 0 ? 0 : errno;
}

// Of a length that does not depend on that of the name of `path`.
std::string TemporaryBeside(const std::string& path) {
  std::random_device random;
  const uint64_t number = uint64_t{random()} << 32 | random();
  return fs::path(path).replace_filename(
      fmt::format(".kiln-{:016x}.tmp", number));
}

// Writes a file beside `path` and gives it its name, and `mode` if known.
absl::Status Replace(const std::string& path, std::optional<mode_t> mode,
                     std::string_view bytes) {
  const std::string temporary = TemporaryBeside(path);
  FileDescriptor file(open(temporary.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                           mode.has_value() ? 0600 : 0666));
  if (!file.valid() && IsOfFolder(errno)) return WriteInPlace(path, bytes);
  if (!file.valid()) return FileError(path, "written", errno);

  const int failure = Fill(std::move(file), mode, bytes);
  if (failure == 0 && rename(temporary.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const int error = failure == 0 ? errno : failure;
  unlink(temporary.c_str());
  if (failure == 0 && IsOfFolder(error)) return WriteInPlace(path, bytes);
  return FileError(path, "written", error);
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
  if (path == "-") return ReadAll(path, STDIN_FILENO, what, limit_bytes);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return FileError(path, "read", errno);
  return ReadAll(path, file.get(), what, limit_bytes);
}

absl::Status WriteFile(const std::string& path, std::string_view bytes) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) {
    if (errno != ENOENT) return FileError(path, "written", errno);
    return Replace(path, std::nullopt, bytes);
  }
  const bool is_alone = found.st_nlink == 1 && found.st_uid == geteuid();
  if (!S_ISREG(found.st_mode) || !is_alone) return WriteInPlace(path, bytes);
  if (access(path.c_str(), W_OK) != 0) {
    return FileError(path, "written", errno);
  }
  return Replace(path, found.st_mode & 07777, bytes);
}

}  // namespace kiln::cli
