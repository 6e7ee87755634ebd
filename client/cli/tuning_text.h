#ifndef KILN_CLIENT_CLI_TUNING_TEXT_H_
#define KILN_CLIENT_CLI_TUNING_TEXT_H_

#include <string>

#include "client/cli/terminal.h"
#include "kiln/v1/service.pb.h"

namespace kiln::cli {

// The help of `--variant`.
inline constexpr char kVariantHelp[] =
    "Other candidates than the fastest known: conv1, rows2, images1, "
    "correlations1, linear1, eager (docs/tuning.md)";

// Where the choice of a schedule came from: the winner, what it was measured on
// and when, and each candidate; indented to stand below the line of a target.
std::string TuningText(const Terminal& terminal, const v1::Tuning& tuning);

Json TuningJson(const v1::Tuning& tuning);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_TUNING_TEXT_H_
