#ifndef KILN_CACHE_ATOMIC_FILE_H_
#define KILN_CACHE_ATOMIC_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cache/file_ops.h"

namespace kiln {

// Makes `path` a file of mode 0600 that holds `contents`, all of it or not at
// all, whatever happens: writes `temp_path` (same directory, must not exist),
// flushes it, renames it, flushes the directory. When this returns OK, the
// file survives a power cut. When it fails, neither file is left, unless
// removing it fails as well.
//
// Errors: UNAVAILABLE, naming the call that failed; NOT_FOUND if the directory
// does not exist.
absl::Status WriteFileAtomically(FileOps* ops, const std::string& path,
                                 const std::string& temp_path,
                                 std::string_view contents);

// Makes the names in `path` durable. Errors: UNAVAILABLE.
absl::Status FlushDirectory(FileOps* ops, const std::string& path);

}  // namespace kiln

#endif  // KILN_CACHE_ATOMIC_FILE_H_
