#ifndef KILN_CLIENT_CLI_COMMANDS_H_
#define KILN_CLIENT_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>

#include "client/cli/exit_code.h"
#include "client/cli/terminal.h"
#include "client/connect_options.h"

namespace kiln::cli {

// What every command gets.
struct Context {
  ConnectOptions connect;
  Terminal::Options terminal;
};

// The command that the command line chose; its arguments are bound.
using Command = std::function<ExitCode(const Context&)>;

// Each adds one command to `app`; parsing sets `chosen`.
void AddServeCommand(CLI::App& app, Command& chosen);
void AddCompileCommand(CLI::App& app, Command& chosen);
void AddRunCommand(CLI::App& app, Command& chosen);
void AddValidateCommand(CLI::App& app, Command& chosen);
void AddExplainCommand(CLI::App& app, Command& chosen);
void AddTuneCommand(CLI::App& app, Command& chosen);
void AddPrewarmCommand(CLI::App& app, Command& chosen);
void AddCacheCommand(CLI::App& app, Command& chosen);
void AddInfoCommand(CLI::App& app, Command& chosen);
void AddDoctorCommand(CLI::App& app, Command& chosen);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_COMMANDS_H_
