#ifndef KILN_CACHE_ENTRY_FORMAT_H_
#define KILN_CACHE_ENTRY_FORMAT_H_

// One cache entry is one file. Integers are little endian, unsigned.
//
//   entry          := header key_text payload digest
//   header         := magic version key_text_size payload_size writer key
//   magic          := "KILN\r\n\x1a\n"   8 bytes; newline damage shows at once
//   version        := u32                kEntryFormatVersion
//   key_text_size  := u32                bytes
//   payload_size   := u64                bytes
//   writer         := 16 bytes           who wrote it, for people; NUL-padded
//   key            := 64 bytes           hexadecimal digits; the file's name
//   key_text       := key_text_size bytes
//   payload        := payload_size bytes
//   digest         := 32 bytes           SHA-256 of all bytes before it
//
// The sizes give the file's size exactly: nothing may follow the digest.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kiln {

// History:
//   1  the first.
inline constexpr uint32_t kEntryFormatVersion = 1;

inline constexpr size_t kEntryHeaderBytes = 8 + 4 + 4 + 8 + 16 + 64;
inline constexpr size_t kEntryOverheadBytes = kEntryHeaderBytes + 32;

// A larger file is damage and is not read. Artifacts stay below 1 MiB; the
// bound only keeps a huge sparse file from being read into memory.
inline constexpr uint64_t kMaxEntryBytes = uint64_t{256} << 20;

// The parts of an entry. A value.
struct CacheEntry {
  std::string key;
  std::string key_text;
  std::string payload;
  std::string writer;  // cut to 16 bytes when written

  friend bool operator==(const CacheEntry&, const CacheEntry&) = default;
};

// What the header says, checked against the file's size only.
struct EntryHeader {
  std::string key;
  std::string writer;
  uint64_t key_text_size = 0;
  uint64_t payload_size = 0;
};

// The bytes of the file. `key` must satisfy IsCacheKey.
std::string SerializeEntry(std::string_view key, std::string_view key_text,
                           std::string_view payload, std::string_view writer);

// Reads the header out of the first bytes (at least kEntryHeaderBytes, or the
// whole file) of a file of `file_size` bytes.
//
// Errors: DATA_LOSS, saying what is wrong.
absl::StatusOr<EntryHeader> ParseEntryHeader(std::string_view first_bytes,
                                             uint64_t file_size,
                                             std::string_view expected_key);

// Reads and verifies all of it: magic, version, sizes, key and digest.
//
// Errors: DATA_LOSS, saying what is wrong. Never anything else, whatever the
// bytes are.
absl::StatusOr<CacheEntry> ParseEntry(std::string_view bytes,
                                      std::string_view expected_key);

}  // namespace kiln

#endif  // KILN_CACHE_ENTRY_FORMAT_H_
