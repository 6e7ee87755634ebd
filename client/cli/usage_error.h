#ifndef KILN_CLIENT_CLI_USAGE_ERROR_H_
#define KILN_CLIENT_CLI_USAGE_ERROR_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

namespace kiln::cli {

// What is wrong with a command line that `app` could not parse, and whose help
// to read. INVALID_ARGUMENT.
absl::Status UsageError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_USAGE_ERROR_H_
