#include "server/ipc_channel.h"

#include <endian.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace kiln {
namespace {

constexpr size_t kHeaderBytes = 8;
// Takes a typical artifact in a few reads.
constexpr size_t kReadBytes = 256 << 10;
// The kernel ends a read at each descriptor, so more than these can only come
// from a peer that sends them unasked.
constexpr size_t kMaxWaitingDescriptors = 4;

uint32_t LoadU32(const char* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return le32toh(value);
}

void AppendU32(uint32_t value, std::string* out) {
  value = htole32(value);
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

absl::Status PeerGone(const char* what, int error) {
  return absl::UnavailableError(
      fmt::format("The socket's peer is gone ({}: {}).", what,
                  error == 0 ? "end of file" : std::strerror(error)));
}

absl::Status Malformed(const std::string& what) {
  return absl::DataLossError(
      fmt::format("The peer breaks the message format ({}).", what));
}

void WaitFor(int fd, short events) {
  pollfd entry{fd, events, 0};
  while (poll(&entry, 1, -1) < 0 && errno == EINTR) {
  }
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

absl::StatusOr<std::pair<FileDescriptor, FileDescriptor>>
IpcChannel::MakePair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::ResourceExhaustedError(
        fmt::format("No socket pair can be made ({}).", std::strerror(errno)));
  }
  return std::make_pair(FileDescriptor(fds[0]), FileDescriptor(fds[1]));
}

absl::Status IpcChannel::Queue(const google::protobuf::MessageLite& message,
                               FileDescriptor descriptor) {
  const size_t size = message.ByteSizeLong();
  if (size > kMaxIpcMessageBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("A message between processes is too large (got {} bytes, "
                    "allowed: {}).",
                    size, kMaxIpcMessageBytes));
  }
  Frame frame;
  frame.bytes.reserve(kHeaderBytes + size);
  AppendU32(static_cast<uint32_t>(size), &frame.bytes);
  AppendU32(descriptor.valid() ? 1 : 0, &frame.bytes);
  message.AppendToString(&frame.bytes);
  frame.descriptor = std::move(descriptor);
  output_.push_back(std::move(frame));
  return absl::OkStatus();
}

absl::Status IpcChannel::Flush() {
  while (!output_.empty()) {
    Frame& frame = output_.front();
    iovec data{frame.bytes.data() + frame.sent,
               frame.bytes.size() - frame.sent};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (frame.descriptor.valid()) {
      header.msg_control = control;
      header.msg_controllen = sizeof(control);
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      const int fd = frame.descriptor.get();
      std::memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    }
    const ssize_t sent =
        sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && WouldBlock(errno)) return absl::OkStatus();
    if (sent < 0) return PeerGone("send", errno);
    frame.descriptor.Reset();
    frame.sent += static_cast<size_t>(sent);
    if (frame.sent == frame.bytes.size()) output_.pop_front();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IpcChannel::TryReceive(
    google::protobuf::MessageLite* message, FileDescriptor* descriptor) {
  while (true) {
    absl::StatusOr<bool> taken = TakeFrame(message, descriptor);
    if (!taken.ok() || *taken) return taken;
    absl::StatusOr<bool> read = ReadSome();
    if (!read.ok() || !*read) return read;
  }
}

absl::StatusOr<bool> IpcChannel::TakeFrame(
    google::protobuf::MessageLite* message, FileDescriptor* descriptor) {
  if (input_.size() < kHeaderBytes) return false;
  const size_t size = LoadU32(input_.data());
  const uint32_t count = LoadU32(input_.data() + 4);
  if (size > kMaxIpcMessageBytes) {
    return Malformed(fmt::format("a message of {} bytes", size));
  }
  if (count > 1) return Malformed(fmt::format("{} descriptors", count));
  if (input_.size() - kHeaderBytes < size) return false;
  if (count > descriptors_.size()) return Malformed("a missing descriptor");
  if (!message->ParseFromArray(input_.data() + kHeaderBytes,
                               static_cast<int>(size))) {
    return Malformed("bytes that are no message");
  }
  descriptor->Reset();
  if (count == 1) {
    *descriptor = std::move(descriptors_.front());
    descriptors_.pop_front();
  }
  input_.erase(0, kHeaderBytes + size);
  return true;
}

absl::StatusOr<bool> IpcChannel::ReadSome() {
  const size_t old_size = input_.size();
  input_.resize(old_size + kReadBytes);
  iovec data{input_.data() + old_size, kReadBytes};
  alignas(
      cmsghdr) char control[CMSG_SPACE(kMaxWaitingDescriptors * sizeof(int))];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got;
  do {
    got = recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const int error = errno;
  input_.resize(old_size + (got > 0 ? static_cast<size_t>(got) : 0));
  if (got < 0 && WouldBlock(error)) return false;
  if (got < 0) return PeerGone("receive", error);
  absl::Status kept = KeepDescriptors(&header);
  if (!kept.ok()) return kept;
  if (got == 0) return PeerGone("receive", 0);
  return true;
}

absl::Status IpcChannel::KeepDescriptors(msghdr* header) {
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr;
       part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      descriptors_.emplace_back(fd);
    }
  }
  if ((header->msg_flags & MSG_CTRUNC) != 0 ||
      descriptors_.size() > kMaxWaitingDescriptors) {
    return Malformed("too many descriptors");
  }
  return absl::OkStatus();
}

absl::Status IpcChannel::Send(const google::protobuf::MessageLite& message,
                              FileDescriptor descriptor) {
  absl::Status status = Queue(message, std::move(descriptor));
  while (status.ok()) {
    status = Flush();
    if (!has_output()) break;
    if (status.ok()) WaitFor(fd(), POLLOUT);
  }
  return status;
}

absl::Status IpcChannel::Receive(google::protobuf::MessageLite* message,
                                 FileDescriptor* descriptor) {
  while (true) {
    absl::StatusOr<bool> received = TryReceive(message, descriptor);
    if (!received.ok()) return received.status();
    if (*received) return absl::OkStatus();
    WaitFor(fd(), POLLIN);
  }
}

}  // namespace kiln
