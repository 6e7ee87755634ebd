#ifndef KILN_CACHE_ENTRY_FILE_H_
#define KILN_CACHE_ENTRY_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "cache/entry_format.h"
#include "cache/file_ops.h"

namespace kiln {

// Reads the entry file at `path` into memory and verifies it. Never maps it:
// a file cut short under a mapping kills the process. Opens neither symbolic
// links nor anything that could block, and reads no more than its header says.
//
// Errors:
//   NOT_FOUND           no file
//   RESOURCE_EXHAUSTED  out of descriptors or memory; says nothing of the file
//   DATA_LOSS           anything else: damaged, unreadable or not a file
absl::StatusOr<CacheEntry> ReadEntryFile(FileOps* ops, const std::string& path,
                                         const std::string& key);

// Reads the key text alone, for listings. Only the header is checked, not the
// digest: what it returns is for people. Errors: as ReadEntryFile.
absl::StatusOr<std::string> ReadKeyText(FileOps* ops, const std::string& path,
                                        const std::string& key);

}  // namespace kiln

#endif  // KILN_CACHE_ENTRY_FILE_H_
