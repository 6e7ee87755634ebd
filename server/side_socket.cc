#include "server/side_socket.h"

#include <endian.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <utility>

namespace kiln {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr size_t kMessageBytes = kTokenBytes + sizeof(uint64_t);

struct Message {
  std::string bytes;
  FileDescriptor fd;
};

Message Receive(int connection) {
  char bytes[kMessageBytes];
  iovec part = {bytes, sizeof(bytes)};
  // Room for two, so that a second descriptor is seen and closed.
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t size =
      recvmsg(connection, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  Message message;
  if (size > 0) message.bytes.assign(bytes, size);
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); size >= 0 && part != nullptr;
       part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      message.fd.Reset(fd);
    }
  }
  return message;
}

absl::Status ParkMessage(Message message, const SessionTable& sessions) {
  if (message.bytes.size() != kMessageBytes || !message.fd.valid()) {
    return absl::InvalidArgumentError("The message is malformed");
  }
  const std::shared_ptr<ClientSession> session =
      sessions.FindByToken(message.bytes.substr(0, kTokenBytes));
  if (!session) return absl::FailedPreconditionError("The token is unknown");
  uint64_t tag = 0;
  std::memcpy(&tag, message.bytes.data() + kTokenBytes, sizeof(tag));
  return session->Park(le64toh(tag), std::move(message.fd));
}

}  // namespace

void ReceiveDescriptor(const FileDescriptor& connection,
                       const SessionTable& sessions) {
  const absl::Status status = ParkMessage(Receive(connection.get()), sessions);
  if (!status.ok()) {
    spdlog::warn("Refusing a descriptor: {}", std::string(status.message()));
  }
  const char answer = status.ok() ? 0 : 1;
  send(connection.get(), &answer, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace kiln
