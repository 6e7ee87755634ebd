#ifndef KILN_CACHE_ERRORS_H_
#define KILN_CACHE_ERRORS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kiln {

// Damage of an entry: DATA_LOSS.
absl::Status EntryTooShortError(uint64_t size_bytes, uint64_t minimum_bytes);
absl::Status EntryTooLargeError(uint64_t size_bytes, uint64_t limit_bytes);
absl::Status EntryMagicError();
absl::Status EntryVersionError(uint64_t version, uint64_t known);
absl::Status EntrySizesError(uint64_t key_text_bytes, uint64_t payload_bytes,
                             uint64_t available_bytes);
absl::Status EntryKeyError(std::string_view expected_key);
absl::Status EntryDigestError();
absl::Status EntryNotAFileError();
absl::Status EntryUnreadableError(int error_number);
absl::Status EntryChangedError(uint64_t read_bytes, uint64_t size_bytes);

// No such entry: NOT_FOUND.
absl::Status EntryMissingError();

// The process or the machine is out of something, for now:
// RESOURCE_EXHAUSTED.
absl::Status EntryReadPostponedError(int error_number);

// A write failed: UNAVAILABLE. `call` is the system call's name.
absl::Status WriteFailedError(std::string_view call, const std::string& path,
                              int error_number);
absl::Status NoRoomError(int64_t size_bytes, int64_t limit_bytes);

// The directory cannot be used: FAILED_PRECONDITION.
absl::Status DirectorySymlinkError(const std::string& path);
absl::Status DirectoryKindError(const std::string& path);
absl::Status DirectoryOwnerError(const std::string& path, uint32_t owner,
                                 uint32_t user);
absl::Status DirectoryModeError(const std::string& path, uint32_t mode);
absl::Status DirectoryLockError(const std::string& path, int error_number);
// `holder`: who writes, as DescribeLockHolder says.
absl::Status DirectoryHeldError(const std::string& path,
                                const std::string& holder);
absl::Status DirectoryAccessError(const std::string& path, int error_number);

}  // namespace kiln

#endif  // KILN_CACHE_ERRORS_H_
