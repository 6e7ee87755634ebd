#ifndef KILN_SERVER_CHILD_PROCESS_H_
#define KILN_SERVER_CHILD_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"

namespace kiln {

// The descriptor on which a child finds its socket to the front.
inline constexpr int kChildSocket = 3;

// One child process, started by exec, never by a bare fork (gRPC does not
// survive one). A resource: destruction kills and reaps the process, waiting
// at most two seconds for one stuck in the kernel. Not thread-safe.
//
// The child is in a process group of its own (an interrupt typed at a terminal
// is the front's business), in the folder "/", with no signal blocked or
// ignored, and holds these descriptors only: 0 and 1 on /dev/null, 2 as the
// front's, kChildSocket.
class ChildProcess {
 public:
  struct Options {
    std::string executable;  // absolute path
    std::vector<std::string> arguments;
    std::vector<std::string> environment;  // "NAME=value"
    // What Kill sends. Tests take one that ends nothing in place of a process
    // that is stuck in the kernel.
    int kill_signal = SIGKILL;
  };

  // `socket` becomes the child's kChildSocket and is closed here.
  //
  // Errors: UNAVAILABLE with the reason of the system.
  static absl::StatusOr<ChildProcess> Start(const Options& options,
                                            FileDescriptor socket);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  // Readable once the process has ended.
  int pidfd() const { return pidfd_.get(); }

  void Kill();

  // Waits for the end and says how it came: "exit status 1", "signal 9
  // (Killed)". Call once, best when pidfd is readable.
  std::string Reap();

 private:
  ChildProcess(pid_t pid, int kill_signal, FileDescriptor pidfd)
      : pid_(pid), kill_signal_(kill_signal), pidfd_(std::move(pidfd)) {}

  pid_t pid_ = 0;  // 0: reaped or moved away
  int kill_signal_;
  FileDescriptor pidfd_;
};

// Has the kernel kill this process when the thread that started it ends, so
// that no child outlives its front. For the child to call first.
void DieWithParent();

}  // namespace kiln

#endif  // KILN_SERVER_CHILD_PROCESS_H_
