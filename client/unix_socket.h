#ifndef KILN_CLIENT_UNIX_SOCKET_H_
#define KILN_CLIENT_UNIX_SOCKET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"

namespace kiln::client {

// A stream connected to the Unix socket at `path`.
//
// Errors: INVALID_ARGUMENT: the path is longer than the kernel allows (107
// bytes); PERMISSION_DENIED; UNAVAILABLE: nobody listens.
absl::StatusOr<FileDescriptor> ConnectUnix(const std::string& path);

// Hands `fd` to the daemon over its side socket, under `tag` (service.proto,
// SessionEvent.Opened). Waits for the answer, at most 10 s.
//
// Errors: those of ConnectUnix; UNAVAILABLE: no answer; FAILED_PRECONDITION:
// the daemon refuses it.
absl::Status SendDescriptor(const std::string& side_socket,
                            const std::string& token, uint64_t tag, int fd);

}  // namespace kiln::client

#endif  // KILN_CLIENT_UNIX_SOCKET_H_
