#ifndef KILN_SERVER_MISS_EXPLANATION_H_
#define KILN_SERVER_MISS_EXPLANATION_H_

#include <string>
#include <string_view>
#include <vector>

#include "cache/disk_cache.h"
#include "cache/key_text.h"

namespace kiln {

// Why a key missed: how it differs from the entry at the least distance.
struct MissExplanation {
  std::string nearest_key;  // empty: there is no entry
  std::vector<KeyTextDifference> differences;
};

MissExplanation ExplainMiss(std::string_view key_text,
                            const std::vector<DiskCache::EntryInfo>& entries);

// "differs from the nearest entry 0f3a12 in: target (sm_90a/132, not
// sm_80/108)".
std::string ToText(const MissExplanation& explanation);

}  // namespace kiln

#endif  // KILN_SERVER_MISS_EXPLANATION_H_
