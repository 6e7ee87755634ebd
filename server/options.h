#ifndef KILN_SERVER_OPTIONS_H_
#define KILN_SERVER_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

enum class Role { kFront, kWorker, kExecutor };
enum class LogFormat { kText, kJson };

// What the command line and the environment say, once parsed.
struct Options {
  Role role = Role::kFront;
  int role_fd = -1;    // workers and executors: the socket to the front
  std::string device;  // executors: "cpu", "cuda:0"

  std::string executable;  // this program, for starting the other roles
  std::string socket_path;
  std::string cache_dir;
  int64_t cache_limit_bytes = int64_t{10} << 30;
  int workers = 1;         // compile workers at most
  std::string nvrtc_path;  // file or folder; empty: look for it
  std::vector<std::string> nvrtc_extra_dirs;  // where to look beside usual
  std::optional<std::chrono::milliseconds> idle_exit;
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kText;
  std::string log_file;  // empty: standard error
  int max_connections = 512;
  std::string record_path;  // manifest of distinct requests; empty: none
  std::chrono::milliseconds drain{30'000};
};

// The environment variables that decide defaults; empty: not set.
struct Environment {
  std::string kiln_socket;
  std::string kiln_cache_dir;
  std::string xdg_runtime_dir;
  std::string xdg_cache_home;
  std::string home;
  std::string cuda_path;
  std::string executable;  // path of this program
  unsigned uid = 0;
  int cores = 1;
};

// Either options to run with, or text to print and a status to exit with.
struct CommandLine {
  std::optional<Options> options;
  std::string output;
  int exit_status = 0;  // 0: --help, --version; 2: bad usage
};

// `arguments` without the program's name. Reads nothing else.
CommandLine ParseCommandLine(const std::vector<std::string>& arguments,
                             const Environment& environment);

}  // namespace kiln

#endif  // KILN_SERVER_OPTIONS_H_
