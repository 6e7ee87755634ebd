#include "cache/errors.h"

#include <fmt/format.h>

#include <system_error>

namespace kiln {
namespace {

std::string ErrorText(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace

absl::Status EntryTooShortError(uint64_t size_bytes, uint64_t minimum_bytes) {
  return absl::DataLossError(
      fmt::format("The entry is too short ({} bytes; at least {} expected).",
                  size_bytes, minimum_bytes));
}

absl::Status EntryTooLargeError(uint64_t size_bytes, uint64_t limit_bytes) {
  return absl::DataLossError(fmt::format(
      "The entry is too large ({} bytes; limit {}).", size_bytes, limit_bytes));
}

absl::Status EntryMagicError() {
  return absl::DataLossError("The file does not start as a Kiln entry does.");
}

absl::Status EntryVersionError(uint64_t version, uint64_t known) {
  return absl::DataLossError(
      fmt::format("The entry has an unknown format version ({}; this build "
                  "knows {}).",
                  version, known));
}

absl::Status EntrySizesError(uint64_t key_text_bytes, uint64_t payload_bytes,
                             uint64_t available_bytes) {
  return absl::DataLossError(
      fmt::format("The entry's sizes contradict the file's (key text {} and "
                  "payload {} bytes; {} present).",
                  key_text_bytes, payload_bytes, available_bytes));
}

absl::Status EntryKeyError(std::string_view expected_key) {
  return absl::DataLossError(fmt::format(
      "The entry belongs to another key (expected {}).", expected_key));
}

absl::Status EntryDigestError() {
  return absl::DataLossError("The entry's digest does not match its bytes.");
}

absl::Status EntryNotAFileError() {
  return absl::DataLossError("The entry is not a regular file.");
}

absl::Status EntryUnreadableError(int error_number) {
  return absl::DataLossError(
      fmt::format("The entry cannot be read ({}).", ErrorText(error_number)));
}

absl::Status EntryChangedError(uint64_t read_bytes, uint64_t size_bytes) {
  return absl::DataLossError(
      fmt::format("The entry ends early ({} of {} bytes could be read).",
                  read_bytes, size_bytes));
}

absl::Status EntryMissingError() {
  return absl::NotFoundError("There is no such entry.");
}

absl::Status EntryReadPostponedError(int error_number) {
  return absl::ResourceExhaustedError(fmt::format(
      "The entry cannot be read now ({}).", ErrorText(error_number)));
}

absl::Status WriteFailedError(std::string_view call, const std::string& path,
                              int error_number) {
  return absl::UnavailableError(
      fmt::format("{} of {} fails ({}).", call, path, ErrorText(error_number)));
}

absl::Status NoRoomError(int64_t size_bytes, int64_t limit_bytes) {
  return absl::UnavailableError(
      fmt::format("The cache has no room for the entry ({} bytes; limit {}).",
                  size_bytes, limit_bytes));
}

absl::Status DirectorySymlinkError(const std::string& path) {
  return absl::FailedPreconditionError(
      fmt::format("The cache directory is a symbolic link ({}).", path));
}

absl::Status DirectoryKindError(const std::string& path) {
  return absl::FailedPreconditionError(
      fmt::format("The cache directory is not a directory ({}).", path));
}

absl::Status DirectoryOwnerError(const std::string& path, uint32_t owner,
                                 uint32_t user) {
  return absl::FailedPreconditionError(
      fmt::format("The cache directory {} belongs to another user (uid {}; "
                  "this process runs as {}).",
                  path, owner, user));
}

absl::Status DirectoryModeError(const std::string& path, uint32_t mode) {
  return absl::FailedPreconditionError(
      fmt::format("Others may write to the cache directory {} (mode {:04o}; "
                  "0700 expected).",
                  path, mode & 07777));
}

absl::Status DirectoryLockError(const std::string& path, int error_number) {
  return absl::FailedPreconditionError(fmt::format(
      "The lock of the cache directory {} cannot be taken ({}); this process "
      "only reads there.",
      path, ErrorText(error_number)));
}

absl::Status DirectoryHeldError(const std::string& path,
                                const std::string& holder) {
  return absl::FailedPreconditionError(
      fmt::format("Another process holds the lock of the cache directory {} "
                  "({}); this one only reads there.",
                  path, holder));
}

absl::Status DirectoryAccessError(const std::string& path, int error_number) {
  return absl::FailedPreconditionError(
      fmt::format("The cache directory {} cannot be created or read ({}).",
                  path, ErrorText(error_number)));
}

}  // namespace kiln
