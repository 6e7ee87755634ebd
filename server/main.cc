#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "server/daemon.h"
#include "server/logging.h"
#include "server/options.h"
#include "server/roles.h"

namespace kiln {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Environment ReadEnvironment() {
  Environment environment;
  environment.kiln_socket = Variable("KILN_SOCKET");
  environment.kiln_cache_dir = Variable("KILN_CACHE_DIR");
  environment.xdg_runtime_dir = Variable("XDG_RUNTIME_DIR");
  environment.xdg_cache_home = Variable("XDG_CACHE_HOME");
  environment.home = Variable("HOME");
  environment.cuda_path = Variable("CUDA_PATH");
  environment.uid = geteuid();
  environment.cores = static_cast<int>(std::thread::hardware_concurrency());
  std::error_code error;
  environment.executable =
      std::filesystem::read_symlink("/proc/self/exe", error).string();
  return environment;
}

// Blocks the signals that end the daemon in every thread to come, so that only
// the descriptor sees them.
FileDescriptor BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC));
}

int Fail(const absl::Status& status) {
  fmt::print(stderr, "kilnd: {}\n", std::string(status.message()));
  return status.code() == absl::StatusCode::kAlreadyExists ? 3 : 1;
}

int RunFront(const Options& options) {
  const FileDescriptor signals = BlockSignals();
  const absl::Status logging = StartLogging(options);
  if (!logging.ok()) return Fail(logging);
  const absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(options);
  if (!daemon.ok()) return Fail(daemon.status());
  (*daemon)->WaitForEnd(signals.get());
  (*daemon)->Drain(signals.get());
  return 0;
}

int Main(const std::vector<std::string>& arguments) {
  const CommandLine line = ParseCommandLine(arguments, ReadEnvironment());
  if (!line.options) {
    std::fputs(line.output.c_str(), line.exit_status == 0 ? stdout : stderr);
    return line.exit_status;
  }
  switch (line.options->role) {
    case Role::kWorker:
      return RunCompileWorker(line.options->role_fd, line.options->nvrtc_path);
    case Role::kExecutor:
      return RunExecutor(line.options->role_fd, line.options->device);
    case Role::kFront:
      return RunFront(*line.options);
  }
  return 2;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  return kiln::Main(std::vector<std::string>(argv + 1, argv + argc));
}
