#include "client/unix_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "client/socket_owner.h"
#include "jit/plan/errors.h"

namespace kiln::client {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

static_assert(std::endian::native == std::endian::little,
              "The tag travels in little-endian order.");

// A daemon that lives answers at once; this only bounds a dead one.
constexpr milliseconds kAnswerTimeout{10'000};

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

absl::Status ConnectError(const std::string& path, int error) {
  if (error == EACCES || error == EPERM) return SocketRefusesUser(path);
  return absl::UnavailableError(
      fmt::format("No kilnd answers on {}: {}", path, ErrnoText(error)));
}

absl::Status QueueIsFull(const std::string& path, milliseconds waited) {
  ErrorDetail detail;
  detail.hint = "Look at the daemon's log; one that hangs must be ended (kill)";
  return WithDetail(
      absl::DeadlineExceededError(fmt::format(
          "kilnd on {} does not accept connections: its queue stays full "
          "(waited {} ms)",
          path, waited.count())),
      detail);
}

timeval ToTimeval(milliseconds time) {
  return {time.count() / 1000, time.count() % 1000 * 1000};
}

// 0 or errno, which is EAGAIN when `timeout` has passed: unix(7) has no other
// sign of a full queue.
int ConnectWithin(int fd, const sockaddr_un& address, milliseconds timeout) {
  const Clock::time_point give_up = Clock::now() + timeout;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(give_up - Clock::now());
    // No limit at all is what 0 stands for.
    const timeval limit = ToTimeval(std::max(left, milliseconds(1)));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == 0) {
      return 0;
    }
    if (errno != EINTR) return errno;
  }
}

absl::Status SendWithDescriptor(int socket, std::string& bytes, int fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec data = {bytes.data(), bytes.size()};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("The side socket takes no descriptor: {}", ErrnoText(errno)));
}

}  // namespace

absl::StatusOr<FileDescriptor> ConnectUnix(const std::string& path,
                                           milliseconds timeout) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(fmt::format(
        "The socket path \"{}\" cannot be used (got {} bytes, allowed: 1 to "
        "{})",
        path, path.size(), sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ConnectError(path, errno);
  const int error = ConnectWithin(fd.get(), address, timeout);
  if (error == EAGAIN) return QueueIsFull(path, timeout);
  if (error != 0) return ConnectError(path, error);
  const absl::Status ours = CheckListener(fd.get(), path);
  if (!ours.ok()) return ours;
  return fd;
}

absl::Status SendDescriptor(const std::string& side_socket,
                            const std::string& token, uint64_t tag, int fd) {
  absl::StatusOr<FileDescriptor> socket =
      ConnectUnix(side_socket, kAnswerTimeout);
  if (!socket.ok()) return socket.status();
  const timeval limit = ToTimeval(kAnswerTimeout);
  setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));

  std::string message = token;
  message.append(reinterpret_cast<const char*>(&tag), sizeof(tag));
  const absl::Status sent = SendWithDescriptor(socket->get(), message, fd);
  if (!sent.ok()) return sent;

  char answer = 0;
  if (recv(socket->get(), &answer, 1, 0) != 1) {
    return absl::UnavailableError("The side socket gives no answer");
  }
  if (answer == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "The daemon refuses the descriptor (answer {}); the session may have "
      "ended",
      static_cast<int>(answer)));
}

}  // namespace kiln::client
