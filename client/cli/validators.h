#ifndef KILN_CLIENT_CLI_VALIDATORS_H_
#define KILN_CLIENT_CLI_VALIDATORS_H_

#include <CLI/CLI.hpp>

namespace kiln::cli {

// A whole number that is not negative; CLI11 itself takes -1 for 2^64 - 1.
CLI::Validator NotNegative();

// Turns "2GiB", "512MiB" or "4096" into bytes.
CLI::Validator SizeInBytes();

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_VALIDATORS_H_
