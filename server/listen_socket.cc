#include "server/listen_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cache/lock_holder.h"

namespace kiln {
namespace {

std::string ErrnoText() { return std::generic_category().message(errno); }

absl::Status BadDir(const std::string& dir, std::string_view problem) {
  return absl::FailedPreconditionError(fmt::format(
      "The socket's folder {} {}; choose another with --socket", dir, problem));
}

// An empty path has no folder, and one that is too long would leave a lock
// behind.
absl::Status CheckPath(const std::string& path) {
  const size_t longest = sizeof(sockaddr_un::sun_path) - 1 -
                         std::string_view(kSideSocketSuffix).size();
  if (!path.empty() && path.size() <= longest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("The socket path \"{}\" cannot be used (got {} bytes, "
                  "allowed: 1 to {}); choose another with --socket",
                  path, path.size(), longest));
}

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(fmt::format(
        "The socket path {} is too long (got {} bytes, allowed: {})", path,
        path.size(), sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// A mistyped path must not cost anybody a file.
absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(fmt::format(
        "{} exists and is no socket; choose another path with --socket", path));
  }
  unlink(path.c_str());
  return absl::OkStatus();
}

std::string HolderOf(int lock_fd) {
  char text[32] = {};
  const ssize_t size = pread(lock_fd, text, sizeof(text), 0);
  struct stat file = {};
  fstat(lock_fd, &file);
  return DescribeLockHolder(std::string_view(text, size > 0 ? size : 0), file);
}

}  // namespace

absl::StatusOr<Peer> PeerOf(int fd) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return absl::InternalError("SO_PEERCRED fails: " + ErrnoText());
  }
  return Peer{credentials.uid, credentials.pid};
}

absl::Status PrepareSocketDir(const std::string& socket_path) {
  const absl::Status usable = CheckPath(socket_path);
  if (!usable.ok()) return usable;
  std::error_code error;
  const std::filesystem::path dir =
      std::filesystem::absolute(socket_path, error).parent_path();
  std::filesystem::create_directories(dir.parent_path(), error);
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return BadDir(dir, "cannot be made: " + ErrnoText());
  }
  struct stat info = {};
  if (lstat(dir.c_str(), &info) != 0) return BadDir(dir, "cannot be read");
  if (S_ISLNK(info.st_mode)) return BadDir(dir, "is a symbolic link");
  if (!S_ISDIR(info.st_mode)) return BadDir(dir, "is not a folder");
  if (info.st_uid != geteuid()) {
    return BadDir(dir, fmt::format("belongs to another user (got uid {}, "
                                   "allowed: {})",
                                   info.st_uid, geteuid()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return BadDir(dir, "can be written to by other users");
  }
  return absl::OkStatus();
}

absl::StatusOr<FileDescriptor> LockSocket(const std::string& socket_path) {
  const std::string path = socket_path + ".lock";
  FileDescriptor lock(
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) {
    return absl::FailedPreconditionError(fmt::format(
        "The lock file {} cannot be opened: {}", path, ErrnoText()));
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError(fmt::format(
        "Another kilnd ({}) serves {}", HolderOf(lock.get()), socket_path));
  }
  const std::string pid = std::to_string(getpid());
  if (ftruncate(lock.get(), 0) != 0 ||
      pwrite(lock.get(), pid.data(), pid.size(), 0) < 0) {
    return absl::InternalError("The lock file cannot be written: " +
                               ErrnoText());
  }
  return lock;
}

ListenSocket::ListenSocket(FileDescriptor fd, std::string path)
    : fd_(std::move(fd)), path_(std::move(path)) {}

ListenSocket::~ListenSocket() {
  if (fd_.valid()) unlink(path_.c_str());
}

absl::StatusOr<ListenSocket> ListenSocket::Open(const std::string& path) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  FileDescriptor fd(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const absl::Status free = RemoveStaleSocket(path);
  if (!free.ok()) return free;
  // The folder is private, so nobody can connect before the chmod.
  const bool listening =
      fd.valid() &&
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address),
           sizeof(*address)) == 0 &&
      chmod(path.c_str(), 0600) == 0 && listen(fd.get(), 512) == 0;
  if (!listening) {
    return absl::InternalError(
        fmt::format("Cannot listen on {}: {}", path, ErrnoText()));
  }
  return ListenSocket(std::move(fd), path);
}

}  // namespace kiln
