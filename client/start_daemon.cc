#include "client/start_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "client/socket_owner.h"
#include "client/unix_socket.h"
#include "jit/plan/errors.h"
#include "proto/file_descriptor.h"

namespace kiln::client {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A log above this size is set aside, once, as "<log>.1".
constexpr uintmax_t kLogLimitBytes = uintmax_t{10} << 20;
// Enough for the sentence that says why a daemon does not start.
constexpr std::streamoff kLogTailBytes = 2048;
// A daemon that lost the race for the lock exits at once; the winner needs
// this long at most from lock to socket.
constexpr std::chrono::milliseconds kWinnerGrace{2'000};

absl::Status WithHint(const absl::Status& status, std::string_view hint) {
  ErrorDetail detail;
  detail.hint = hint;
  return WithDetail(status, detail);
}

bool IsProgram(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

absl::StatusOr<FileDescriptor> OpenLog(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (fs::file_size(path, error) > kLogLimitBytes && !error) {
    fs::rename(path, path + ".1", error);
  }
  FileDescriptor log(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (log.valid()) return log;
  return absl::UnavailableError(
      fmt::format("The daemon's log {} cannot be opened: {}", path,
                  std::generic_category().message(errno)));
}

std::string LogTail(const std::string& path, std::streamoff from) {
  std::ifstream log(path, std::ios::binary);
  log.seekg(0, std::ios::end);
  const std::streamoff size = log.tellg();
  log.seekg(std::max(std::min(from, size), size - kLogTailBytes));
  std::string tail((std::istreambuf_iterator<char>(log)), {});
  while (tail.ends_with('\n')) tail.pop_back();
  return tail.empty() ? "(empty)" : tail;
}

std::vector<std::string> Arguments(const std::string& kilnd,
                                   const ConnectOptions& options) {
  std::vector<std::string> arguments = {kilnd, "--socket", options.socket,
                                        "--idle-exit", options.idle_exit};
  arguments.insert(arguments.end(), options.kilnd_args.begin(),
                   options.kilnd_args.end());
  return arguments;
}

// In the child of a program that may have threads: system calls only.
[[noreturn]] void BecomeDaemon(char* const* argv, int null, int log,
                               int report) {
  setsid();
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  const pid_t pid = fork();
  if (pid != 0) {
    const bool told = write(report, &pid, sizeof(pid)) == sizeof(pid);
    _exit(told && pid > 0 ? 0 : 1);
  }
  execv(argv[0], argv);
  _exit(127);
}

// The daemon's pidfd. It is forked twice so that it is nobody's zombie.
absl::StatusOr<FileDescriptor> Spawn(const std::string& kilnd,
                                     const ConnectOptions& options, int log) {
  std::vector<std::string> arguments = Arguments(kilnd, options);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const FileDescriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::UnavailableError("No pipe");
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);

  const pid_t child = fork();
  if (child == 0) BecomeDaemon(argv.data(), null.get(), log, write_end.get());
  write_end.Reset();
  pid_t pid = -1;
  const bool told = child > 0 &&
                    read(read_end.get(), &pid, sizeof(pid)) == sizeof(pid) &&
                    pid > 0;
  if (child > 0) waitpid(child, nullptr, 0);
  if (!told) return absl::UnavailableError("No process can be started");
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool HasExited(const FileDescriptor& pidfd) {
  pollfd entry = {pidfd.get(), POLLIN, 0};
  return !pidfd.valid() || poll(&entry, 1, 0) == 1;
}

}  // namespace

absl::StatusOr<std::string> FindKilnd(const ConnectOptions& options) {
  if (!options.kilnd.empty()) {
    if (IsProgram(options.kilnd)) return options.kilnd;
    return absl::UnavailableError(
        fmt::format("{} is not a program", options.kilnd));
  }
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = self.parent_path() / "kilnd";
  if (IsProgram(beside)) return beside.string();
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path folder = folders.substr(begin, end - begin);
    if (IsProgram(folder / "kilnd")) return (folder / "kilnd").string();
    begin = end + 1;
  }
  return WithHint(absl::UnavailableError(fmt::format(
                      "There is no kilnd at {} or on PATH", beside.string())),
                  "Start one yourself (kilnd), or install Kiln");
}

absl::Status StartDaemon(const ConnectOptions& options) {
  const absl::Status ours = CheckSocketFolder(options.socket);
  if (!ours.ok()) return ours;
  const absl::StatusOr<std::string> kilnd = FindKilnd(options);
  if (!kilnd.ok()) return kilnd.status();
  const absl::StatusOr<FileDescriptor> log = OpenLog(options.log_file);
  if (!log.ok()) return log.status();
  const std::streamoff log_start = lseek(log->get(), 0, SEEK_END);
  const absl::StatusOr<FileDescriptor> pidfd =
      Spawn(*kilnd, options, log->get());
  if (!pidfd.ok()) return pidfd.status();

  Clock::time_point give_up = Clock::now() + options.start_timeout;
  bool exited = false;
  auto pause = std::chrono::milliseconds(2);
  while (Clock::now() < give_up) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        give_up - Clock::now());
    if (ConnectUnix(options.socket, left).ok()) return absl::OkStatus();
    if (!exited && HasExited(*pidfd)) {
      exited = true;
      give_up = std::min(give_up, Clock::now() + kWinnerGrace);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
  return WithHint(
      absl::UnavailableError(fmt::format(
          "{} {} and nobody answers on {}. End of its log, {}:\n{}", *kilnd,
          exited ? "exits"
                 : fmt::format("is not ready after {} ms",
                               options.start_timeout.count()),
          options.socket, options.log_file,
          LogTail(options.log_file, log_start))),
      exited ? "Put right what the end of its log names, then try again"
             : "Look at its log; a machine under load may need longer");
}

}  // namespace kiln::client
