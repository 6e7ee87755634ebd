#ifndef KILN_TESTS_E2E_PROCESS_H_
#define KILN_TESTS_E2E_PROCESS_H_

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln::e2e {

// A folder under the system's temporary one, removed with what it holds.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

struct ProcessOptions {
  std::map<std::string, std::string> environment;  // beside the inherited
  std::string input;                               // file for standard input
  std::string output;                              // files to append to
  std::string errors;
  int descriptor_limit = 0;  // RLIMIT_NOFILE; 0: inherited
  // Without root's leave to open every file, so that modes count for it too.
  bool heeds_file_modes = false;
};

// A child process; killed, if it lives, when this is destroyed or the test
// dies.
class Process {
 public:
  Process(const std::vector<std::string>& arguments,
          const ProcessOptions& options);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Exit status, or 128 + the signal. Nothing if it lives on for so long.
  std::optional<int> Wait(int timeout_ms = 60'000);

 private:
  pid_t pid_ = -1;
};

// Of a program that has ended.
struct CommandResult {
  int status = -1;
  std::string out;
  std::string err;
};
CommandResult RunCommand(const std::vector<std::string>& arguments,
                         ProcessOptions options = {});

// build/bin/<name>.
std::string Program(const std::string& name);

// What `path` holds; empty, or what was read until then, where it cannot be
// opened or read, as with files of /proc whose process ends meanwhile.
std::string ReadWhole(const std::filesystem::path& path);
void WriteWhole(const std::filesystem::path& path, const std::string& text);

// Living children of `pid` whose command line contains `text`.
std::vector<pid_t> ChildrenOf(pid_t pid, const std::string& text);
int OpenDescriptors(pid_t pid);
bool IsAlive(pid_t pid);

}  // namespace kiln::e2e

#endif  // KILN_TESTS_E2E_PROCESS_H_
