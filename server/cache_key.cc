#include "server/cache_key.h"

#include <algorithm>

#include "server/errors.h"

namespace kiln {
namespace {

constexpr size_t kKeyDigits = 64;
constexpr size_t kMinPrefixDigits = 6;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

}  // namespace

bool IsKey(std::string_view text) {
  return text.size() == kKeyDigits && IsHex(text);
}

absl::StatusOr<DiskCache::EntryInfo> FindEntry(
    std::string_view text, const std::vector<DiskCache::EntryInfo>& entries) {
  if (text.size() < kMinPrefixDigits || text.size() > kKeyDigits ||
      !IsHex(text)) {
    return MalformedKey(text);
  }
  const DiskCache::EntryInfo* match = nullptr;
  int matches = 0;
  for (const DiskCache::EntryInfo& entry : entries) {
    if (std::string_view(entry.key).substr(0, text.size()) != text) continue;
    match = &entry;
    ++matches;
  }
  if (matches == 0) return UnknownKey(text);
  if (matches > 1) return AmbiguousKey(text, matches);
  return *match;
}

std::string_view KeyTextField(std::string_view key_text,
                              std::string_view field) {
  while (!key_text.empty()) {
    const size_t end = std::min(key_text.find('\n'), key_text.size());
    const std::string_view line = key_text.substr(0, end);
    key_text.remove_prefix(std::min(end + 1, key_text.size()));
    if (line == "plan:") return {};
    if (line.substr(0, field.size()) == field &&
        line.substr(field.size(), 2) == ": ") {
      return line.substr(field.size() + 2);
    }
  }
  return {};
}

std::string OnlyToolchain(const std::vector<DiskCache::EntryInfo>& entries) {
  std::string_view only;
  for (const DiskCache::EntryInfo& entry : entries) {
    if (KeyTextField(entry.key_text, "target") == "cpu") continue;
    const std::string_view toolchain =
        KeyTextField(entry.key_text, "toolchain");
    if (toolchain.empty()) continue;
    if (!only.empty() && only != toolchain) return {};
    only = toolchain;
  }
  return std::string(only);
}

}  // namespace kiln
