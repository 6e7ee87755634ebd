#ifndef KILN_CLIENT_SOCKET_OWNER_H_
#define KILN_CLIENT_SOCKET_OWNER_H_

#include <string>

#include "absl/status/status.h"

namespace kiln::client {

// A daemon serves its own user alone. What follows returns PERMISSION_DENIED,
// with a hint, in a sentence that names `socket`, this user and whose it is.

// For a socket at which connect(2) says EACCES or EPERM: with the file that
// refuses, its mode and its owner.
absl::Status SocketRefusesUser(const std::string& socket);

// If `fd`, which is connected to `socket`, has another user's process at its
// other end.
absl::Status CheckListener(int fd, const std::string& socket);

// If the folder of `socket` is there and another user's, so that no kilnd of
// this user's would serve in it.
absl::Status CheckSocketFolder(const std::string& socket);

}  // namespace kiln::client

#endif  // KILN_CLIENT_SOCKET_OWNER_H_
