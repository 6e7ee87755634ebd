#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/usage_error.h"
#include "client/cli/validators.h"
#include "client/version.h"

namespace kiln::cli {
namespace {

constexpr char kFooter[] = R"(
Examples:
  kiln compile plan.kiln --target h100-sxm,a100
  kiln run plan.kiln --device cpu --verify
  kiln explain plan.kiln --target a100 --schedule
  kiln tune plan.kiln --device cuda:0
  kiln prewarm fleet.jsonl --target h100-sxm --jobs 4
  kiln doctor

A plan is a file of plan text, or of proto JSON if its name ends in .json; "-"
is standard input. Data goes to standard output, everything else to standard
error. A daemon is started when none answers.

Exit status: 0 done, 1 failed, 2 usage, 3 no daemon, 4 not permitted, 5 the
plan does not compile, 6 deadline, 7 partly done, 8 corruption found, 9
incompatible daemon, 130 interrupted.)";

void AddGlobals(CLI::App& app, Context& context) {
  static const std::map<std::string, Color> colors = {
      {"auto", Color::kAuto},
      {"always", Color::kAlways},
      {"never", Color::kNever}};
  app.add_option("--socket", context.connect.socket, "The daemon's socket")
      ->capture_default_str();
  app.add_flag(
      "--no-start", [&context](int64_t) { context.connect.auto_start = false; },
      "Do not start a daemon when none answers");
  app.add_option_function<double>(
         "--timeout",
         [&context](double seconds) {
           context.connect.call_timeout =
               std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
         },
         "Deadline of each call in seconds (default: 120)")
      ->check(SecondsBetween(0.001, 86400));
  app.add_flag("--json", context.terminal.json,
               "Print a JSON document, with a \"schema\", instead of text");
  app.add_flag("-q,--quiet", context.terminal.quiet, "Say errors only");
  app.add_flag("-v,--verbose", context.terminal.verbosity, "Say more");
  app.add_option_function<std::string>(
         "--color",
         [&context](const std::string& when) {
           context.terminal.color = colors.at(when);
         },
         "When to use colors; NO_COLOR is heeded")
      ->check(CLI::IsMember(&colors));
}

void AddCommands(CLI::App& app, Command& chosen) {
  AddServeCommand(app, chosen);
  AddCompileCommand(app, chosen);
  AddRunCommand(app, chosen);
  AddValidateCommand(app, chosen);
  AddExplainCommand(app, chosen);
  AddTuneCommand(app, chosen);
  AddPrewarmCommand(app, chosen);
  AddCacheCommand(app, chosen);
  AddInfoCommand(app, chosen);
  AddDoctorCommand(app, chosen);
  for (CLI::App* command : app.get_subcommands({})) {
    command->footer(command->get_footer() +
                    "\n\nOptions of every command, --json and --timeout among "
                    "them: kiln --help");
  }
}

// Whether all that was printed has gone out. Nobody may be left to read from a
// pipe ("kiln ... | head"), which is no error.
bool OutputIsWhole() {
  struct stat output = {};
  return std::ferror(stdout) == 0 || fstat(STDOUT_FILENO, &output) != 0 ||
         S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode);
}

int Main(int argc, char** argv) {
  Context context;
  context.connect = DefaultConnectOptions();
  const char* no_color = std::getenv("NO_COLOR");
  context.terminal.no_color = no_color != nullptr && *no_color != '\0';

  CLI::App app("kiln compiles fused GPU kernels with kilnd, and runs them.",
               "kiln");
  app.set_version_flag("--version", fmt::format("kiln {}", kClientVersion));
  app.footer(kFooter);
  app.require_subcommand(1);
  app.fallthrough();
  Command chosen;
  AddGlobals(app, context);
  AddCommands(app, chosen);
  UnmarkValues(app);
  try {
    app.parse(MarkedArguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      return app.exit(error);
    }
    // Parsing may have ended before it came to the flag.
    context.terminal.json =
        std::count(argv, argv + argc, std::string_view("--json")) > 0;
    Terminal(context.terminal).Error(UsageError(app, error));
    return kUsage;
  }
  const ExitCode code = chosen(context);
  if (code != kOk || OutputIsWhole()) return code;
  Terminal(context.terminal)
      .Error(absl::DataLossError("Standard output cannot be written"));
  return kFailure;
}

}  // namespace
}  // namespace kiln::cli

int main(int argc, char** argv) { return kiln::cli::Main(argc, argv); }
