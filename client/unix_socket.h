#ifndef KILN_CLIENT_UNIX_SOCKET_H_
#define KILN_CLIENT_UNIX_SOCKET_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"

namespace kiln::client {

// A stream connected to the Unix socket at `path`. Waits at most `timeout`, at
// least 1 ms, for room in the queue of those to be accepted.
//
// Errors: INVALID_ARGUMENT: the path is longer than the kernel allows (107
// bytes); PERMISSION_DENIED, with a hint: another user's, or not accessible;
// UNAVAILABLE: nobody listens; DEADLINE_EXCEEDED, with a hint: the queue stays
// full.
absl::StatusOr<FileDescriptor> ConnectUnix(const std::string& path,
                                           std::chrono::milliseconds timeout);

// Hands `fd` to the daemon over its side socket, under `tag` (service.proto,
// SessionEvent.Opened). Waits at most 10 s to connect, and for the answer.
//
// Errors: those of ConnectUnix; UNAVAILABLE: no answer; FAILED_PRECONDITION:
// the daemon refuses it.
absl::Status SendDescriptor(const std::string& side_socket,
                            const std::string& token, uint64_t tag, int fd);

}  // namespace kiln::client

#endif  // KILN_CLIENT_UNIX_SOCKET_H_
