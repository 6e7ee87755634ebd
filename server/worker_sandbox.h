#ifndef KILN_SERVER_WORKER_SANDBOX_H_
#define KILN_SERVER_WORKER_SANDBOX_H_

#include "absl/status/status.h"

namespace kiln {

// From now on this process opens no file and no socket, starts no program and
// touches no other process: such system calls fail with EPERM. What is open
// stays so, and threads can be started. For a compile worker once NVRTC is
// warm, which needs none of these any more: whatever a compile makes of NVRTC
// has nothing to work with. Cannot be undone. A second wall, not the first:
// clients' text does not reach NVRTC.
//
// Errors: UNAVAILABLE: the kernel has no seccomp filters.
absl::Status EnterWorkerSandbox();

}  // namespace kiln

#endif  // KILN_SERVER_WORKER_SANDBOX_H_
