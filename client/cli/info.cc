#include <fmt/format.h>

#include "client/cli/commands.h"
#include "client/connection.h"

namespace kiln::cli {
namespace {

constexpr char kInfoExamples[] = R"(
Examples:
  kiln info
  kiln info --json | jq .devices)";

Json InfoToJson(const v1::GetServerInfoResponse& info) {
  Json devices = Json::array();
  for (const v1::DeviceInfo& device : info.devices()) {
    devices.push_back({{"device", device.device()},
                       {"name", device.name()},
                       {"target", device.target()},
                       {"uuid", device.uuid()},
                       {"memory_bytes", device.memory_bytes()},
                       {"state", device.state()}});
  }
  return {{"version", info.version()},
          {"protocol", info.protocol()},
          {"pid", info.pid()},
          {"uptime_ms", info.uptime_ms()},
          {"cache_dir", info.cache_dir()},
          {"nvrtc_version", info.nvrtc_version()},
          {"toolchain", info.toolchain()},
          {"compiler", info.compiler()},
          {"workers", info.workers()},
          {"devices", devices}};
}

std::string InfoToText(const v1::GetServerInfoResponse& info) {
  std::string text = fmt::format(
      "kilnd      {} (protocol {}), pid {}, up {} s\n"
      "cache      {}\n"
      "nvrtc      {}\n"
      "toolchain  {}\n"
      "compiler   {}\n"
      "workers    {}\n",
      info.version(), info.protocol(), info.pid(), info.uptime_ms() / 1000,
      info.cache_dir(),
      info.nvrtc_version().empty() ? "none" : info.nvrtc_version(),
      info.toolchain(), info.compiler(), info.workers());
  for (const v1::DeviceInfo& device : info.devices()) {
    text += fmt::format("{:<10} {} ({}), {}\n", device.device(), device.name(),
                        device.target(), device.state());
  }
  return text;
}

ExitCode Info(const Context& context) {
  const Terminal terminal(context.terminal);
  const auto connection = client::Connection::Open(context.connect);
  if (!connection.ok()) {
    terminal.Error(connection.status());
    return ExitCodeOf(connection.status());
  }
  const v1::GetServerInfoResponse& info = (*connection)->greeting();
  terminal.Print(InfoToText(info));
  terminal.PrintJson("kiln.info/1", InfoToJson(info));
  return kOk;
}

}  // namespace

void AddInfoCommand(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("info", "What the daemon is and what it can do");
  command->footer(kInfoExamples);
  command->fallthrough();
  command->callback([&chosen] { chosen = Info; });
}

}  // namespace kiln::cli
