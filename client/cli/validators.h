#ifndef KILN_CLIENT_CLI_VALIDATORS_H_
#define KILN_CLIENT_CLI_VALIDATORS_H_

#include <CLI/CLI.hpp>

namespace kiln::cli {

// A whole number from 0 to 2^64 - 1, which CLI11 itself takes for -1 and for
// all that is larger.
CLI::Validator NotNegative();

// Turns "2GiB", "512MiB" or "4096" into bytes, at most 2^63 - 1.
CLI::Validator SizeInBytes();

CLI::Validator NotEmpty();

// Printable ASCII, as names and keys are; no request carries bytes that are not
// UTF-8.
CLI::Validator PlainText();

// A number from `least` to `most`. NaN, which CLI::Range takes, is none.
CLI::Validator SecondsBetween(double least, double most);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_VALIDATORS_H_
