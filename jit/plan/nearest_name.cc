#include "jit/plan/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kiln {
namespace {

// Longer names are no misspelling, and would make the distance slow.
constexpr size_t kMaxNameBytesTried = 64;

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view NearestName(std::string_view name,
                             const std::vector<std::string_view>& candidates) {
  std::string_view nearest;
  if (name.size() > kMaxNameBytesTried) return nearest;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > kMaxNameBytesTried) continue;
    const size_t distance = EditDistance(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(std::string_view name,
                       const std::vector<std::string_view>& candidates) {
  const std::string_view nearest = NearestName(name, candidates);
  if (nearest.empty()) return "";
  return fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace kiln
