#include "jit/compile/workspace.h"

#include <algorithm>
#include <numeric>

namespace kiln {
namespace {

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

int64_t Align(int64_t bytes) {
  return (bytes + kWorkspaceAlign - 1) / kWorkspaceAlign * kWorkspaceAlign;
}

bool LiveTogether(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The lowest offset where `size_bytes` fit between `taken`.
int64_t LowestGap(std::vector<Range> taken, int64_t size_bytes) {
  std::sort(taken.begin(), taken.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  int64_t offset = 0;
  for (const Range& range : taken) {
    if (offset + size_bytes <= range.begin) break;
    offset = std::max(offset, range.end);
  }
  return offset;
}

}  // namespace

WorkspaceLayout LayOutWorkspace(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].size_bytes > buffers[b].size_bytes;
  });

  WorkspaceLayout layout{std::vector<int64_t>(buffers.size())};
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t buffer = order[i];
    std::vector<Range> taken;
    for (size_t j = 0; j < i; ++j) {
      const size_t placed = order[j];
      if (!LiveTogether(buffers[buffer], buffers[placed])) continue;
      const int64_t begin = layout.offsets[placed];
      taken.push_back({begin, begin + Align(buffers[placed].size_bytes)});
    }
    const int64_t size_bytes = Align(buffers[buffer].size_bytes);
    layout.offsets[buffer] = LowestGap(std::move(taken), size_bytes);
    layout.size_bytes =
        std::max(layout.size_bytes, layout.offsets[buffer] + size_bytes);
  }
  return layout;
}

}  // namespace kiln
