#ifndef KILN_SERVER_CACHE_KEY_H_
#define KILN_SERVER_CACHE_KEY_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/disk_cache.h"

namespace kiln {

// Whether `text` is 64 lower-case hexadecimal digits.
bool IsKey(std::string_view text);

// The entry that `text`, a key or a prefix of at least 6 digits, names.
//
// Errors: INVALID_ARGUMENT: malformed or ambiguous; NOT_FOUND.
absl::StatusOr<DiskCache::EntryInfo> FindEntry(
    std::string_view text, const std::vector<DiskCache::EntryInfo>& entries);

// The value of a field of a key text ("target"); empty if it has none.
std::string_view KeyTextField(std::string_view key_text,
                              std::string_view field);

// The toolchain of all entries that have one; empty if they differ or none has.
std::string OnlyToolchain(const std::vector<DiskCache::EntryInfo>& entries);

}  // namespace kiln

#endif  // KILN_SERVER_CACHE_KEY_H_
