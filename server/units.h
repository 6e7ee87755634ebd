#ifndef KILN_SERVER_UNITS_H_
#define KILN_SERVER_UNITS_H_

#include <chrono>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace kiln {

// Bytes: a whole number with an optional unit, "10GiB", "64 KiB", "4096".
// Units: B, KiB, MiB, GiB, TiB (powers of 1024).
//
// Errors: INVALID_ARGUMENT for any other text and above 2^63 - 1 bytes.
absl::StatusOr<int64_t> ParseSize(std::string_view text);

// A whole number with a unit: "250ms", "30s", "10m", "2h".
//
// Errors: INVALID_ARGUMENT for any other text and above a year.
absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);

}  // namespace kiln

#endif  // KILN_SERVER_UNITS_H_
