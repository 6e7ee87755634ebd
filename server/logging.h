#ifndef KILN_SERVER_LOGGING_H_
#define KILN_SERVER_LOGGING_H_

#include <string>

#include "absl/status/status.h"
#include "server/options.h"

namespace kiln {

// Makes spdlog's default logger write as the options say. Text:
//   2026-01-31T12:00:00.123+00:00 info request=1f0e... Compile OK ...
// JSON: one object per line with time, level, message and, for lines that
// belong to a call, request.
//
// Errors: FAILED_PRECONDITION if the log file cannot be opened.
absl::Status StartLogging(const Options& options);

// `text` fit for one log line: control characters become '?'.
std::string Printable(std::string text);

}  // namespace kiln

#endif  // KILN_SERVER_LOGGING_H_
