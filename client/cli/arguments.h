#ifndef KILN_CLIENT_CLI_ARGUMENTS_H_
#define KILN_CLIENT_CLI_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kiln::cli {

// CLI11 takes "[a,b]" for "a" and "b" where an option may have several values,
// and "[]" for none of them. So that all values arrive as they are given, those
// that end in "]" are marked with what no argument can hold: a NUL behind them.

// The arguments behind the program's name, marked; the last one first, as CLI11
// takes them.
std::vector<std::string> MarkedArguments(int argc, char** argv);

// Every option of `app` and its commands takes marks off its values, before
// they are checked. Call it once all options are there.
void UnmarkValues(CLI::App& app);

// `text` without its mark.
std::string Unmarked(std::string text);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_ARGUMENTS_H_
