#include "cache/entry_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "cache/errors.h"

namespace kiln {
namespace {

// One pread serves nearly every entry: those of the four headline chains are
// below 64 KiB.
constexpr uint64_t kFirstReadBytes = 128 << 10;

absl::Status ReadError(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return EntryMissingError();
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return EntryReadPostponedError(error_number);
    default:
      return EntryUnreadableError(error_number);
  }
}

struct OpenEntry {
  FileHandle file;
  uint64_t size = 0;
};

absl::StatusOr<OpenEntry> OpenForReading(FileOps* ops,
                                         const std::string& path) {
  OpenEntry entry;
  // O_NONBLOCK: opening a fifo must not wait for a writer.
  entry.file = OpenFile(ops, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!entry.file.valid()) return ReadError(-entry.file.get());
  struct stat status = {};
  const int result = ops->Fstat(entry.file.get(), &status);
  if (result < 0) return ReadError(-result);
  if (!S_ISREG(status.st_mode)) return EntryNotAFileError();
  entry.size = static_cast<uint64_t>(status.st_size);
  if (entry.size > kMaxEntryBytes) {
    return EntryTooLargeError(entry.size, kMaxEntryBytes);
  }
  return entry;
}

// Appends up to byte `end` of the file.
absl::Status ReadUpTo(FileOps* ops, int fd, uint64_t end, std::string* bytes) {
  size_t have = bytes->size();
  bytes->resize(end);
  while (have < end) {
    const ssize_t got = RetryInterrupted([&] {
      return ops->Pread(fd, bytes->data() + have, end - have,
                        static_cast<off_t>(have));
    });
    if (got < 0) return ReadError(static_cast<int>(-got));
    if (got == 0) return EntryChangedError(have, end);
    have += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CacheEntry> ReadEntryFile(FileOps* ops, const std::string& path,
                                         const std::string& key) {
  const auto entry = OpenForReading(ops, path);
  if (!entry.ok()) return entry.status();

  std::string bytes;
  const int fd = entry->file.get();
  absl::Status status =
      ReadUpTo(ops, fd, std::min(entry->size, kFirstReadBytes), &bytes);
  if (!status.ok()) return status;
  const auto header = ParseEntryHeader(bytes, entry->size, key);
  if (!header.ok()) return header.status();
  status = ReadUpTo(ops, fd, entry->size, &bytes);
  if (!status.ok()) return status;

  return ParseEntry(bytes, key);
}

absl::StatusOr<std::string> ReadKeyText(FileOps* ops, const std::string& path,
                                        const std::string& key) {
  const auto entry = OpenForReading(ops, path);
  if (!entry.ok()) return entry.status();

  std::string bytes;
  const int fd = entry->file.get();
  absl::Status status = ReadUpTo(
      ops, fd, std::min<uint64_t>(entry->size, kEntryHeaderBytes), &bytes);
  if (!status.ok()) return status;
  const auto header = ParseEntryHeader(bytes, entry->size, key);
  if (!header.ok()) return header.status();
  status = ReadUpTo(ops, fd, kEntryHeaderBytes + header->key_text_size, &bytes);
  if (!status.ok()) return status;

  return bytes.substr(kEntryHeaderBytes);
}

}  // namespace kiln
