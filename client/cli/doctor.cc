#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>

#include "client/cli/commands.h"
#include "client/connection.h"
#include "client/version.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

constexpr char kDoctorExamples[] = R"(
Examples:
  kiln doctor
  kiln doctor --json | jq '.checks[] | select(.verdict != "ok")'

Exit status: 0 if nothing fails (warnings may be shown), 3 if no daemon
answers, 4 if it is another user's, 6 if it hangs, 9 if it is of another
protocol, else 1.)";

// Behind "fail  " and a name of up to 8 letters.
constexpr int kFindingColumn = 15;

enum class Verdict { kOk, kWarn, kFail };

struct Check {
  std::string name;
  Verdict verdict;
  std::string finding;
  std::string fix;  // empty if ok
};

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "";
}

Check CheckDriver() {
  using GetVersion = int (*)(int*);
  const std::unique_ptr<void, int (*)(void*)> library(
      dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), dlclose);
  const Check missing = {
      "driver", Verdict::kWarn, "no NVIDIA driver (libcuda.so.1)",
      "Install it to run on a GPU; compiling and the cpu device need none"};
  if (library == nullptr) return missing;
  const auto get_version =
      reinterpret_cast<GetVersion>(dlsym(library.get(), "cuDriverGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return missing;
  return {"driver", Verdict::kOk,
          fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10), ""};
}

Check CheckNvrtc(const v1::GetServerInfoResponse& info) {
  if (!info.nvrtc_version().empty()) {
    return {"nvrtc", Verdict::kOk, info.nvrtc_version(), ""};
  }
  return {"nvrtc", Verdict::kWarn, "the daemon finds none",
          "Install the CUDA toolkit or the nvidia-cuda-nvrtc wheel, or start "
          "kilnd with --nvrtc PATH; until then only cached kernels and the "
          "cpu device work"};
}

Check CheckVersion(const v1::GetServerInfoResponse& info) {
  if (info.version() == kClientVersion) {
    return {"version", Verdict::kOk, info.version(), ""};
  }
  return {"version", Verdict::kWarn,
          fmt::format("kilnd {}, kiln {}", info.version(), kClientVersion),
          fmt::format("Restart the daemon: kill {}", info.pid())};
}

Check CheckCache(const client::Connection& connection) {
  const auto stats = connection.Call(
      connection.cache(), &v1::Cache::Stub::Stats, v1::CacheStatsRequest());
  if (!stats.ok()) {
    return {"cache", Verdict::kFail, std::string(stats.status().message()),
            "Look at the daemon's log"};
  }
  if (stats->degraded()) {
    return {"cache", Verdict::kFail,
            fmt::format("{} cannot be written", stats->directory()),
            "Free disk space or fix its permissions; kernels are kept in "
            "memory until then"};
  }
  if (stats->has_writable() && !stats->writable()) {
    return {"cache", Verdict::kWarn,
            fmt::format("{} is only read: another process has its lock, or it "
                        "cannot be taken",
                        stats->directory()),
            "The daemon's log names the process; end it if it is a kilnd, or "
            "give this daemon a directory of its own (kilnd --cache-dir); "
            "until then its "
            "kernels are kept in memory"};
  }
  const std::string finding =
      fmt::format("{} entries, {} of {} MiB, {}", stats->entries(),
                  stats->size_bytes() >> 20, stats->limit_bytes() >> 20,
                  stats->directory());
  if (stats->damaged() == 0) return {"cache", Verdict::kOk, finding, ""};
  return {"cache", Verdict::kWarn,
          fmt::format("{} damaged entries were set aside", stats->damaged()),
          "Check the disk; kiln cache verify"};
}

std::string DeviceFix(const std::string& device) {
  if (device == "cpu") return "Look at the daemon's log";
  return "Look at the daemon's log and, for Xid lines, at dmesg; a GPU that "
         "stays so needs nvidia-smi --gpu-reset or a restart of the host";
}

std::vector<Check> CheckDevices(const v1::GetServerInfoResponse& info) {
  std::vector<Check> checks;
  for (const v1::DeviceInfo& device : info.devices()) {
    const bool healthy = device.state().rfind("unhealthy", 0) != 0;
    checks.push_back({device.device(), healthy ? Verdict::kOk : Verdict::kFail,
                      fmt::format("{}, {}", device.name(), device.state()),
                      healthy ? "" : DeviceFix(device.device())});
  }
  return checks;
}

// What to do about a daemon that is not reached.
std::string SocketFix(const absl::Status& status, const std::string& socket) {
  const std::string hint = DetailOf(status).hint;
  if (!hint.empty()) return hint;
  if (absl::IsUnavailable(status)) {
    return "Start one: kiln serve --socket " + socket;
  }
  return "Choose another socket: --socket, or KILN_SOCKET";
}

// `text` with its further lines below its first, which begins at `column`.
std::string Indented(std::string_view text, int column) {
  std::string indented;
  for (const char c : text) {
    indented += c;
    if (c == '\n') indented.append(column, ' ');
  }
  return indented;
}

void PrintChecks(const Terminal& terminal, const std::vector<Check>& checks) {
  using Style = Terminal::Style;
  static constexpr Style kStyles[] = {Style::kGood, Style::kDoubtful,
                                      Style::kBad};
  Json json = Json::array();
  for (const Check& check : checks) {
    const std::string verdict =
        fmt::format("{:<4}", VerdictName(check.verdict));
    terminal.Print(fmt::format(
        "{}  {:<8} {}\n",
        terminal.Styled(kStyles[static_cast<int>(check.verdict)], verdict),
        check.name, Indented(check.finding, kFindingColumn)));
    if (!check.fix.empty()) {
      terminal.Print(fmt::format("      {:<8} {}\n", "", check.fix));
    }
    json.push_back({{"name", check.name},
                    {"verdict", VerdictName(check.verdict)},
                    {"finding", check.finding},
                    {"fix", check.fix}});
  }
  terminal.PrintJson("kiln.doctor/1", {{"checks", json}});
}

ExitCode Doctor(const Context& context) {
  const Terminal terminal(context.terminal);
  std::vector<Check> checks = {CheckDriver()};
  const auto connection = client::Connection::Open(context.connect);
  if (!connection.ok()) {
    checks.push_back({"socket", Verdict::kFail,
                      std::string(connection.status().message()),
                      SocketFix(connection.status(), context.connect.socket)});
    PrintChecks(terminal, checks);
    return ExitCodeOf(connection.status());
  }
  const v1::GetServerInfoResponse& info = (*connection)->greeting();
  checks.push_back(
      {"socket", Verdict::kOk,
       fmt::format("pid {} on {}", info.pid(), context.connect.socket), ""});
  checks.push_back(CheckVersion(info));
  checks.push_back(CheckNvrtc(info));
  checks.push_back(CheckCache(**connection));
  for (Check& check : CheckDevices(info)) checks.push_back(std::move(check));
  PrintChecks(terminal, checks);
  for (const Check& check : checks) {
    if (check.verdict == Verdict::kFail) return kFailure;
  }
  return kOk;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Is everything in place? One fix for each thing that is not");
  command->footer(kDoctorExamples);
  command->fallthrough();
  command->callback([&chosen] { chosen = Doctor; });
}

}  // namespace kiln::cli
