#include "client/cli/usage_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "client/cli/arguments.h"
#include "jit/plan/errors.h"
#include "jit/plan/nearest_name.h"

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

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    names.push_back(command->get_name());
  }
  return names;
}

// "; did you mean '--target'?", or nothing. `unknown` may have a value behind
// "=".
std::string Suggestion(const CLI::App& app, const CLI::App& innermost,
                       const std::string& unknown) {
  std::vector<std::string> names = CommandsOf(innermost);
  for (const CLI::App* known : {&innermost, &app}) {
    for (const CLI::Option* option : known->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return DidYouMean(unknown.substr(0, unknown.find('=')),
                    {names.begin(), names.end()});
}

// CLI11 would say "A subcommand is required" of a misspelt one, and "--target
// is required" of "--targt".
std::string Problem(const CLI::App& app, const CLI::App& innermost,
                    const CLI::ParseError& error) {
  const std::vector<std::string> commands = CommandsOf(innermost);
  const std::vector<std::string> unknowns = app.remaining(true);
  if (unknowns.empty()) {
    return commands.empty() ? error.what()
                            : fmt::format("A command is needed (one of: {})",
                                          fmt::join(commands, ", "));
  }
  const std::string unknown = Unmarked(unknowns.front());
  const std::string suggestion = Suggestion(app, innermost, unknown);
  if (commands.empty()) {
    return fmt::format("There is no such option or argument{} (got {})",
                       suggestion, unknown);
  }
  return fmt::format(
      "There is no such command or option{} (got {}, commands: {})", suggestion,
      unknown, fmt::join(commands, ", "));
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
