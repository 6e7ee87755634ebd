#ifndef KILN_SERVER_IPC_CHANNEL_H_
#define KILN_SERVER_IPC_CHANNEL_H_

#include <sys/socket.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "proto/file_descriptor.h"

namespace kiln {

// The largest message either way. The largest artifacts are tens of MB.
inline constexpr int64_t kMaxIpcMessageBytes = int64_t{64} << 20;

// One end of a socket between the front and a child process, carrying frames:
//
//   u32 payload bytes | u32 descriptors (0 or 1) | payload: one message
//
// both little-endian; a descriptor travels as SCM_RIGHTS with the first byte
// of its frame. Nothing that the peer sends is trusted. After any error the
// channel is useless. A resource; not thread-safe.
class IpcChannel {
 public:
  // `socket` is a connected stream socket.
  explicit IpcChannel(FileDescriptor socket) : socket_(std::move(socket)) {}
  IpcChannel(const IpcChannel&) = delete;
  IpcChannel& operator=(const IpcChannel&) = delete;

  // Two connected sockets, closed on exec.
  static absl::StatusOr<std::pair<FileDescriptor, FileDescriptor>> MakePair();

  int fd() const { return socket_.get(); }

  // The non-blocking side. Queue appends a frame, Flush writes what the socket
  // takes now; has_output says that some is left.
  //
  // Errors: RESOURCE_EXHAUSTED: the message is over the limit (the channel
  // stays usable); UNAVAILABLE: the peer is gone.
  absl::Status Queue(const google::protobuf::MessageLite& message,
                     FileDescriptor descriptor = FileDescriptor());
  absl::Status Flush();
  bool has_output() const { return !output_.empty(); }

  // Takes the next whole message without blocking; false if there is none yet.
  // `descriptor` receives what came with it, or none.
  //
  // Errors: UNAVAILABLE: the peer is gone; DATA_LOSS: it broke the format.
  absl::StatusOr<bool> TryReceive(google::protobuf::MessageLite* message,
                                  FileDescriptor* descriptor);

  // The same, waiting as long as it takes: for children, whose only work is
  // the next message.
  absl::Status Send(const google::protobuf::MessageLite& message,
                    FileDescriptor descriptor = FileDescriptor());
  absl::Status Receive(google::protobuf::MessageLite* message,
                       FileDescriptor* descriptor);

 private:
  struct Frame {
    std::string bytes;
    size_t sent = 0;
    FileDescriptor descriptor;
  };

  absl::StatusOr<bool> TakeFrame(google::protobuf::MessageLite* message,
                                 FileDescriptor* descriptor);
  absl::StatusOr<bool> ReadSome();  // false: nothing to read now
  absl::Status KeepDescriptors(msghdr* header);

  FileDescriptor socket_;
  std::deque<Frame> output_;
  std::string input_;
  std::deque<FileDescriptor>
      descriptors_;  // received, their frames not yet taken
};

}  // namespace kiln

#endif  // KILN_SERVER_IPC_CHANNEL_H_
