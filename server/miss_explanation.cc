#include "server/miss_explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace kiln {

MissExplanation ExplainMiss(std::string_view key_text,
                            const std::vector<DiskCache::EntryInfo>& entries) {
  const DiskCache::EntryInfo* nearest = nullptr;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const DiskCache::EntryInfo& entry : entries) {
    if (entry.key_text.empty()) continue;
    const int64_t distance = KeyTextDistance(key_text, entry.key_text);
    if (distance >= least) continue;
    least = distance;
    nearest = &entry;
  }
  if (nearest == nullptr) return {};
  return {nearest->key, CompareKeyTexts(key_text, nearest->key_text)};
}

std::string ToText(const MissExplanation& explanation) {
  if (explanation.nearest_key.empty()) return "the cache is empty";
  std::vector<std::string> parts;
  for (const KeyTextDifference& difference : explanation.differences) {
    parts.push_back(fmt::format("{} ({}, not {})", difference.field,
                                difference.wanted, difference.found));
  }
  return fmt::format("it differs from the nearest entry {} in: {}",
                     explanation.nearest_key.substr(0, 12),
                     fmt::join(parts, ", "));
}

}  // namespace kiln
