#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "client/cli/commands.h"
#include "client/start_daemon.h"

namespace kiln::cli {
namespace {

constexpr char kServeExamples[] = R"(
Examples:
  kiln serve
  kiln serve --socket /tmp/k/kilnd.sock -- --cache-dir /tmp/k/cache

What follows -- goes to kilnd; kilnd --help lists its options.)";

ExitCode Serve(const Context& context,
               const std::vector<std::string>& further) {
  const Terminal terminal(context.terminal);
  absl::StatusOr<std::string> kilnd = client::FindKilnd(context.connect);
  if (!kilnd.ok()) {
    terminal.Error(kilnd.status());
    return kUnreachable;
  }
  std::vector<std::string> arguments = {*kilnd, "--socket",
                                        context.connect.socket};
  arguments.insert(arguments.end(), further.begin(), further.end());
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  terminal.Error(absl::UnknownError(
      *kilnd + " does not start: " + std::generic_category().message(errno)));
  return kFailure;
}

}  // namespace

void AddServeCommand(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("serve", "Run the daemon in the foreground");
  command->footer(kServeExamples);
  command->fallthrough();
  // CLI11 keeps what follows -- from the options of the whole only where an
  // argument is left for it to fill.
  const auto further = std::make_shared<std::vector<std::string>>();
  command->add_option("KILND_OPTIONS", *further, "Options of kilnd, after --");
  command->callback([&chosen, further] {
    chosen = [further](const Context& context) {
      return Serve(context, *further);
    };
  });
}

}  // namespace kiln::cli
