#include "cache/entry_format.h"

#include <algorithm>

#include "cache/digest.h"
#include "cache/errors.h"

namespace kiln {
namespace {

constexpr std::string_view kMagic("KILN\r\n\x1a\n", 8);
constexpr size_t kWriterBytes = 16;
constexpr size_t kKeyBytes = 64;

void AppendLittleEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) {
    *out += static_cast<char>((value >> (8 * i)) & 0xff);
  }
}

// Takes the front of `rest`, which is known to be long enough.
std::string_view Take(std::string_view* rest, size_t size) {
  const std::string_view front = rest->substr(0, size);
  rest->remove_prefix(front.size());
  return front;
}

uint64_t TakeLittleEndian(std::string_view* rest, size_t bytes) {
  uint64_t value = 0;
  const std::string_view field = Take(rest, bytes);
  for (size_t i = 0; i < field.size(); ++i) {
    value |= uint64_t{static_cast<unsigned char>(field[i])} << (8 * i);
  }
  return value;
}

std::string PaddedWriter(std::string_view writer) {
  std::string padded(writer.substr(0, kWriterBytes));
  padded.resize(kWriterBytes, '\0');
  return padded;
}

}  // namespace

std::string SerializeEntry(std::string_view key, std::string_view key_text,
                           std::string_view payload, std::string_view writer) {
  std::string bytes;
  bytes.reserve(kEntryOverheadBytes + key_text.size() + payload.size());
  bytes += kMagic;
  AppendLittleEndian(kEntryFormatVersion, 4, &bytes);
  AppendLittleEndian(key_text.size(), 4, &bytes);
  AppendLittleEndian(payload.size(), 8, &bytes);
  bytes += PaddedWriter(writer);
  bytes += key;
  bytes += key_text;
  bytes += payload;
  bytes += Sha256(bytes);
  return bytes;
}

absl::StatusOr<EntryHeader> ParseEntryHeader(std::string_view first_bytes,
                                             uint64_t file_size,
                                             std::string_view expected_key) {
  if (file_size < kEntryOverheadBytes ||
      first_bytes.size() < kEntryHeaderBytes) {
    return EntryTooShortError(file_size, kEntryOverheadBytes);
  }
  if (file_size > kMaxEntryBytes) {
    return EntryTooLargeError(file_size, kMaxEntryBytes);
  }
  std::string_view rest = first_bytes;
  if (Take(&rest, kMagic.size()) != kMagic) return EntryMagicError();
  const uint64_t version = TakeLittleEndian(&rest, 4);
  if (version != kEntryFormatVersion) {
    return EntryVersionError(version, kEntryFormatVersion);
  }
  EntryHeader header;
  header.key_text_size = TakeLittleEndian(&rest, 4);
  header.payload_size = TakeLittleEndian(&rest, 8);
  header.writer = Take(&rest, kWriterBytes);
  header.writer.erase(std::min(header.writer.find('\0'), kWriterBytes));
  header.key = Take(&rest, kKeyBytes);

  // Each size is bounded before the sum, which therefore cannot overflow.
  const uint64_t contents = file_size - kEntryOverheadBytes;
  if (header.key_text_size > contents || header.payload_size > contents ||
      header.key_text_size + header.payload_size != contents) {
    return EntrySizesError(header.key_text_size, header.payload_size, contents);
  }
  if (header.key != expected_key) return EntryKeyError(expected_key);
  return header;
}

absl::StatusOr<CacheEntry> ParseEntry(std::string_view bytes,
                                      std::string_view expected_key) {
  const auto header = ParseEntryHeader(bytes, bytes.size(), expected_key);
  if (!header.ok()) return header.status();

  const std::string_view digest = bytes.substr(bytes.size() - kSha256Bytes);
  bytes.remove_suffix(kSha256Bytes);
  if (Sha256(bytes) != digest) return EntryDigestError();

  std::string_view rest = bytes.substr(kEntryHeaderBytes);
  CacheEntry entry;
  entry.key = header->key;
  entry.writer = header->writer;
  entry.key_text = Take(&rest, header->key_text_size);
  entry.payload = rest;
  return entry;
}

}  // namespace kiln
