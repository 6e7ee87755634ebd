#include "tests/e2e/process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

extern char** environ;

namespace kiln::e2e {
namespace {

namespace fs = std::filesystem;

void Redirect(const std::string& path, int flags, int fd) {
  if (path.empty()) return;
  const int file = open(path.c_str(), flags, 0600);
  if (file < 0 || dup2(file, fd) < 0) _exit(126);
}

// Takes from root what it gains by execve: capabilities(7), "bounding set".
void HeedFileModes() {
  if (prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) != 0 ||
      prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH) != 0) {
    _exit(126);
  }
}

[[noreturn]] void Exec(char* const* argv, char* const* environment,
                       const ProcessOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Redirect(options.input, O_RDONLY, STDIN_FILENO);
  Redirect(options.output, O_WRONLY | O_CREAT | O_APPEND, STDOUT_FILENO);
  Redirect(options.errors, O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO);
  if (options.descriptor_limit > 0) {
    const rlim_t limit = options.descriptor_limit;
    const rlimit both = {limit, limit};
    setrlimit(RLIMIT_NOFILE, &both);
  }
  if (options.heeds_file_modes && geteuid() == 0) HeedFileModes();
  execve(argv[0], argv, environment);
  _exit(127);
}

std::vector<std::string> Environment(const ProcessOptions& options) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (!options.environment.contains(name)) environment.push_back(text);
  }
  for (const auto& entry : options.environment) {
    environment.push_back(entry.first + "=" + entry.second);
  }
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "kiln-e2e-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code error;
  fs::remove_all(path_, error);
}

Process::Process(const std::vector<std::string>& arguments,
                 const ProcessOptions& options) {
  std::vector<std::string> texts = arguments;
  std::vector<std::string> environment = Environment(options);
  const std::vector<char*> argv = Pointers(texts);
  const std::vector<char*> envp = Pointers(environment);
  pid_ = fork();
  if (pid_ == 0) Exec(argv.data(), envp.data(), options);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

Process::~Process() {
  if (pid_ <= 0) return;
  Signal(SIGKILL);
  Wait();
}

void Process::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

std::optional<int> Process::Wait(int timeout_ms) {
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (pid_ > 0 && std::chrono::steady_clock::now() < give_up) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return std::nullopt;
}

CommandResult RunCommand(const std::vector<std::string>& arguments,
                         ProcessOptions options) {
  const TempDir dir;
  options.output = dir / "out";
  options.errors = dir / "err";
  Process process(arguments, options);
  CommandResult result;
  result.status = process.Wait(120'000).value_or(-1);
  result.out = ReadWhole(options.output);
  result.err = ReadWhole(options.errors);
  return result;
}

std::string Program(const std::string& name) {
  return std::string(KILN_BIN_DIR) + "/" + name;
}

std::string ReadWhole(const fs::path& path) {
  const std::ifstream file(path, std::ios::binary);
  // A stream that is asked for its characters one by one throws when a read
  // fails, as of /proc/PID/stat once the process is gone; this one does not.
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteWhole(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<pid_t> ChildrenOf(pid_t pid, const std::string& text) {
  std::vector<pid_t> children;
  std::error_code error;
  fs::directory_iterator entry("/proc", error);
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path folder = entry->path();
    const pid_t candidate = std::atoi(folder.filename().c_str());
    if (candidate <= 0) continue;
    // "pid (name) state ppid ...", and the name may hold spaces.
    const std::string stat = ReadWhole(folder / "stat");
    const size_t end = stat.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream fields(stat.substr(end + 1));
    char state = 0;
    pid_t parent = 0;
    fields >> state >> parent;
    if (parent != pid || state == 'Z') continue;
    std::string command = ReadWhole(folder / "cmdline");
    for (char& c : command) c = c == '\0' ? ' ' : c;
    if (command.find(text) != std::string::npos) children.push_back(candidate);
  }
  return children;
}

int OpenDescriptors(pid_t pid) {
  std::error_code error;
  int count = 0;
  fs::directory_iterator entry("/proc/" + std::to_string(pid) + "/fd", error);
  for (; entry != fs::directory_iterator(); entry.increment(error)) ++count;
  return count;
}

bool IsAlive(pid_t pid) {
  const std::string stat = ReadWhole("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(')');
  return end != std::string::npos && stat.size() > end + 2 &&
         stat[end + 2] != 'Z';
}

}  // namespace kiln::e2e
