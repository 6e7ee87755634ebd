#include "server/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace kiln {
namespace {

constexpr int kReapTimeoutMs = 2'000;

absl::Status CannotStart(const std::string& executable, int error) {
  return absl::UnavailableError(
      fmt::format("The child process {} cannot start ({}).", executable,
                  std::strerror(error)));
}

// glibc 2.36 declares pidfd_open, but not for C++.
FileDescriptor PidfdOf(pid_t pid) {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What happens in the child between its creation and exec.
class SpawnSetup {
 public:
  explicit SpawnSetup(int socket) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, kChildSocket);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, kChildSocket + 1);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    sigset_t signals;
    posix_spawnattr_init(&attributes);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const Options& options,
                                                 FileDescriptor socket) {
  std::vector<std::string> arguments = {options.executable};
  arguments.insert(arguments.end(), options.arguments.begin(),
                   options.arguments.end());
  std::vector<std::string> environment = options.environment;
  SpawnSetup setup(socket.get());
  pid_t pid = 0;
  const int error = posix_spawn(
      &pid, options.executable.c_str(), &setup.actions, &setup.attributes,
      Pointers(arguments).data(), Pointers(environment).data());
  if (error != 0) return CannotStart(options.executable, error);

  ChildProcess child(pid, options.kill_signal, PidfdOf(pid));
  if (!child.pidfd_.valid()) return CannotStart(options.executable, errno);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      kill_signal_(other.kill_signal_),
      pidfd_(std::move(other.pidfd_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ == 0) return;
  Kill();
  pollfd ended{pidfd_.get(), POLLIN, 0};
  if (!pidfd_.valid() || poll(&ended, 1, kReapTimeoutMs) == 1) Reap();
}

void ChildProcess::Kill() {
  if (pid_ != 0) kill(pid_, kill_signal_);
}

std::string ChildProcess::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  if (WIFSIGNALED(status)) {
    return fmt::format("signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

void DieWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace kiln
