#ifndef KILN_SERVER_ROLES_H_
#define KILN_SERVER_ROLES_H_

#include <string>

namespace kiln {

// Entry points of the processes that the front starts. Each talks with the
// front over the socket `fd`, ends when that closes, and returns the process's
// exit status. Messages: server/ipc.proto.

// Compiles plans with the NVRTC at `nvrtc_path`.
int RunCompileWorker(int fd, const std::string& nvrtc_path);

// Executes artifacts on `device`.
int RunExecutor(int fd, const std::string& device);

}  // namespace kiln

#endif  // KILN_SERVER_ROLES_H_
