#include "server/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include "server/units.h"
#include "server/version.h"

namespace kiln {
namespace {

constexpr char kFooter[] = R"(
Examples:
  kilnd
      Serve this user on the default socket until stopped.
  kilnd --socket /tmp/k/kilnd.sock --cache-dir /tmp/k/cache --idle-exit 10m
      A private daemon that goes away when nobody needs it.
  kilnd --cache-limit 2GiB --log-format json --log-file /var/log/kilnd.log
      Under a service manager.
  kilnd --record requests.jsonl
      Collect what clients compile, for `kiln prewarm requests.jsonl`.

Environment: KILN_SOCKET, KILN_CACHE_DIR, XDG_RUNTIME_DIR, XDG_CACHE_HOME and
CUDA_PATH change defaults; options win.)";

std::string DefaultSocket(const Environment& environment) {
  if (!environment.kiln_socket.empty()) return environment.kiln_socket;
  if (!environment.xdg_runtime_dir.empty()) {
    return environment.xdg_runtime_dir + "/kiln/kilnd.sock";
  }
  return fmt::format("/tmp/kiln-{}/kilnd.sock", environment.uid);
}

std::string DefaultCacheDir(const Environment& environment) {
  if (!environment.kiln_cache_dir.empty()) return environment.kiln_cache_dir;
  if (!environment.xdg_cache_home.empty()) {
    return environment.xdg_cache_home + "/kiln";
  }
  if (!environment.home.empty()) return environment.home + "/.cache/kiln";
  return fmt::format("/tmp/kiln-{}/cache", environment.uid);
}

// CUDA's own folder, then where scripts/setup puts PyPI's wheels.
std::vector<std::string> NvrtcDirs(const Environment& environment) {
  std::vector<std::string> dirs;
  if (!environment.cuda_path.empty()) {
    dirs.push_back(environment.cuda_path + "/lib64");
  }
  const std::filesystem::path executable = environment.executable;
  dirs.push_back(executable.parent_path().parent_path() / "nvrtc");
  return dirs;
}

// One core stays with the front; more than 8 workers only queue for memory.
int DefaultWorkers(int cores) { return std::clamp(cores - 1, 1, 8); }

template <typename Value, typename Parse>
CLI::callback_t Into(Value& value, Parse parse, const std::string& option) {
  return [&value, parse, option](const CLI::results_t& results) {
    auto parsed = parse(results.back());
    if (!parsed.ok()) {
      throw CLI::ValidationError(option,
                                 std::string(parsed.status().message()));
    }
    value = *parsed;
    return true;
  };
}

// An empty variable of a script names no folder.
CLI::Validator NotEmpty() {
  const auto check = [](std::string& text) {
    return std::string(text.empty() ? "nothing is given" : "");
  };
  return CLI::Validator(check, "");
}

void AddServing(CLI::App& app, Options& options) {
  app.add_option("--socket", options.socket_path, "Unix socket to serve on")
      ->check(NotEmpty())
      ->capture_default_str();
  app.add_option("--max-connections", options.max_connections,
                 "Connections at the same time")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--idle-exit",
                 Into(options.idle_exit, ParseDuration, "--idle-exit"),
                 "Exit after this long without connections or work (default: "
                 "never)")
      ->type_name("DURATION");
  app.add_option("--drain", Into(options.drain, ParseDuration, "--drain"),
                 "On SIGTERM, wait this long for calls under way (default: "
                 "30s)")
      ->type_name("DURATION");
}

void AddCompiling(CLI::App& app, Options& options) {
  app.add_option("--cache-dir", options.cache_dir, "Folder of the cache")
      ->check(NotEmpty())
      ->capture_default_str();
  app.add_option("--cache-limit",
                 Into(options.cache_limit_bytes, ParseSize, "--cache-limit"),
                 "Size limit of the cache (default: 10GiB)")
      ->type_name("SIZE");
  app.add_option("--workers", options.workers, "Compile workers at most")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--nvrtc", options.nvrtc_path,
                 "NVRTC library, or the folder that holds it (default: look "
                 "for it)");
  app.add_option("--record", options.record_path,
                 "Append each distinct request to this manifest");
}

void AddLogging(CLI::App& app, Options& options) {
  app.add_option("--log-level", options.log_level, "Least severe level to log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--log-format",
         [&options](const std::string& name) {
           options.log_format =
               name == "json" ? LogFormat::kJson : LogFormat::kText;
         },
         "How lines of the log look")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--log-file", options.log_file,
                 "Append the log to this file (default: standard error)");
}

void AddRoles(CLI::App& app, Options& options) {
  static const std::map<std::string, Role> roles = {
      {"worker", Role::kWorker}, {"executor", Role::kExecutor}};
  const std::string hidden;
  app.add_option("--role", options.role)
      ->transform(CLI::CheckedTransformer(roles))
      ->group(hidden);
  app.add_option("--fd", options.role_fd)->group(hidden);
  app.add_option("--device", options.device)->group(hidden);
}

CommandLine AnswerParseError(const CLI::App& app,
                             const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    const bool help = error.get_name() == "CallForHelp";
    return {{}, help ? app.help() : std::string(error.what()) + "\n", 0};
  }
  return {{},
          fmt::format("kilnd: {}\nRun kilnd --help for usage.\n", error.what()),
          2};
}

}  // namespace

CommandLine ParseCommandLine(const std::vector<std::string>& arguments,
                             const Environment& environment) {
  Options options;
  options.executable = environment.executable;
  options.nvrtc_extra_dirs = NvrtcDirs(environment);
  options.socket_path = DefaultSocket(environment);
  options.cache_dir = DefaultCacheDir(environment);
  options.workers = DefaultWorkers(environment.cores);

  CLI::App app("kilnd compiles fused GPU kernels, caches and runs them.",
               "kilnd");
  app.set_version_flag("--version", fmt::format("kilnd {}", kVersion));
  app.footer(kFooter);
  AddServing(app, options);
  AddCompiling(app, options);
  AddLogging(app, options);
  AddRoles(app, options);
  try {
    // CLI11 takes its vector from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return AnswerParseError(app, error);
  }
  return {options, {}, 0};
}

}  // namespace kiln
