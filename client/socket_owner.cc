#include "client/socket_owner.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "jit/plan/errors.h"

namespace kiln::client {
namespace {

namespace fs = std::filesystem;

// Of modes: the bits that chmod(2) sets.
constexpr mode_t kModeBits = 07777;

// "alice (uid 1000)", or "uid 1000" if that has no name.
std::string UserText(uid_t uid) {
  std::array<char, 4096> buffer;
  passwd entry = {};
  passwd* found = nullptr;
  getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return fmt::format("uid {}", uid);
  return fmt::format("{} (uid {})", found->pw_name, uid);
}

std::string FileText(const fs::path& path, const struct stat& info) {
  return fmt::format("{} (mode {:04o}) belongs to {}", path.string(),
                     info.st_mode & kModeBits, UserText(info.st_uid));
}

absl::Status Refused(const std::string& socket, std::string_view reason,
                     uid_t owner) {
  ErrorDetail detail;
  detail.field = "socket";
  detail.value = socket;
  detail.hint = owner == geteuid()
                    ? "Change its mode (chmod), or choose another socket "
                      "(--socket, KILN_SOCKET)"
                    : "Each user has a daemon of their own: choose another "
                      "socket (--socket, KILN_SOCKET)";
  return WithDetail(absl::PermissionDeniedError(
                        fmt::format("The socket {} cannot be used by {}: {}",
                                    socket, UserText(geteuid()), reason)),
                    detail);
}

}  // namespace

absl::Status SocketRefusesUser(const std::string& socket) {
  std::error_code error;
  fs::path path = fs::absolute(socket, error);
  struct stat info = {};
  // What cannot be looked at lies in a folder that refuses.
  while (stat(path.c_str(), &info) != 0 && path.has_relative_path()) {
    path = path.parent_path();
  }
  return Refused(socket, FileText(path, info), info.st_uid);
}

absl::Status CheckListener(int fd, const std::string& socket) {
  ucred listener = {};
  socklen_t size = sizeof(listener);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0 ||
      listener.uid == geteuid()) {
    return absl::OkStatus();
  }
  return Refused(socket, "its daemon belongs to " + UserText(listener.uid),
                 listener.uid);
}

absl::Status CheckSocketFolder(const std::string& socket) {
  std::error_code error;
  const fs::path folder = fs::absolute(socket, error).parent_path();
  struct stat info = {};
  if (lstat(folder.c_str(), &info) != 0 || info.st_uid == geteuid()) {
    return absl::OkStatus();
  }
  return Refused(socket, "its folder " + FileText(folder, info), info.st_uid);
}

}  // namespace kiln::client
