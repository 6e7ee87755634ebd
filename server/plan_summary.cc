#include "server/plan_summary.h"

#include <algorithm>

namespace kiln {

std::string SummarizeKeyText(std::string_view key_text) {
  constexpr std::string_view kOp = "op";
  constexpr std::string_view kKind = ".kind=";
  std::string summary;
  while (!key_text.empty()) {
    const size_t end = std::min(key_text.find('\n'), key_text.size());
    const std::string_view line = key_text.substr(0, end);
    key_text.remove_prefix(std::min(end + 1, key_text.size()));
    const size_t kind = line.find(kKind);
    if (line.substr(0, kOp.size()) != kOp || kind == line.npos) continue;
    if (!summary.empty()) summary += ' ';
    summary += line.substr(kind + kKind.size());
  }
  return summary;
}

}  // namespace kiln
