#ifndef KILN_CLIENT_CLI_FILE_BYTES_H_
#define KILN_CLIENT_CLI_FILE_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln::cli {

// That `path` cannot be `verb`, "read" or "written", for the reason of the
// errno `error`: PERMISSION_DENIED, NOT_FOUND or UNKNOWN.
absl::Status FileError(std::string_view path, std::string_view verb, int error);

// The bytes of a file; "-" is standard input.
//
// Errors: those of FileError; INVALID_ARGUMENT above `limit_bytes`, the size
// of the longest `what` ("a plan").
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     std::string_view what,
                                     int64_t limit_bytes);

// Writes the whole of `path`, or leaves what it was: a regular file is written
// beside it, as ".kiln-<pid>.tmp", and takes its place and permissions. What
// is no regular file (a pipe, a terminal, a link), or stands in a folder where
// nothing can be made, is written in place.
//
// Errors: those of FileError.
absl::Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_FILE_BYTES_H_
