#include "client/cli/usage_error.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "client/cli/arguments.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

// "kiln cache": as far as the command line names commands.
std::string CommandOf(const CLI::App& app, const CLI::App** innermost) {
  std::string path = app.get_name();
  *innermost = &app;
  while (!(*innermost)->get_subcommands().empty()) {
    *innermost = (*innermost)->get_subcommands().front();
    path += " " + (*innermost)->get_name();
  }
  return path;
}

std::string KnownCommands(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

// CLI11 would say "A subcommand is required" of a misspelt one.
std::string Problem(const CLI::App& app, const CLI::App& innermost,
                    const CLI::ParseError& error) {
  const std::string commands = KnownCommands(innermost);
  if (commands.empty()) return error.what();
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) {
    return fmt::format("A command is needed (one of: {})", commands);
  }
  return fmt::format(
      "There is no such command or option (got {}, commands: {})",
      Unmarked(unknown.front()), commands);
}

}  // namespace

absl::Status UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* innermost = nullptr;
  const std::string command = CommandOf(app, &innermost);
  ErrorDetail detail;
  detail.hint = fmt::format("{} --help shows options and examples", command);
  return WithDetail(absl::InvalidArgumentError(Problem(app, *innermost, error)),
                    detail);
}

}  // namespace kiln::cli
