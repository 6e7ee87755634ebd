#ifndef KILN_SERVER_LISTEN_SOCKET_H_
#define KILN_SERVER_LISTEN_SOCKET_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"

namespace kiln {

// Who is at the other end of a Unix connection, as the kernel says.
struct Peer {
  uid_t uid = 0;
  pid_t pid = 0;
};

// SO_PEERCRED of `fd`. Errors: INTERNAL.
absl::StatusOr<Peer> PeerOf(int fd);

// Of the socket that takes descriptors, beside the one for calls.
inline constexpr char kSideSocketSuffix[] = ".fd";

// Makes the parent folder of `socket_path` (mode 0700) or checks that it is a
// real folder that this user owns and others cannot write to.
//
// Errors: INVALID_ARGUMENT: the path is empty, or so long (more than 104 bytes)
// that the side socket would have no name; FAILED_PRECONDITION naming the
// folder and what is wrong with it.
absl::Status PrepareSocketDir(const std::string& socket_path);

// The right to serve on a socket path: an exclusive lock on "<path>.lock",
// which dies with the process. The file stays.
//
// Errors: ALREADY_EXISTS when another daemon holds it, naming its pid if known.
absl::StatusOr<FileDescriptor> LockSocket(const std::string& socket_path);

// A listening Unix socket of mode 0600 at a path; a socket that is in the way
// is replaced, so hold the lock. Removes its file in the end. A resource.
class ListenSocket {
 public:
  // Errors: INVALID_ARGUMENT: the path is longer than the kernel allows (107
  // bytes); FAILED_PRECONDITION: something else than a socket has that name;
  // INTERNAL: the kernel refuses.
  static absl::StatusOr<ListenSocket> Open(const std::string& path);
  ListenSocket(ListenSocket&&) noexcept = default;
  ListenSocket& operator=(ListenSocket&&) = delete;
  ~ListenSocket();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  ListenSocket(FileDescriptor fd, std::string path);
  FileDescriptor fd_;
  std::string path_;
};

}  // namespace kiln

#endif  // KILN_SERVER_LISTEN_SOCKET_H_
