#ifndef KILN_JIT_COMPILE_WORKSPACE_H_
#define KILN_JIT_COMPILE_WORKSPACE_H_

#include <cstdint>
#include <vector>

namespace kiln {

// cudaMalloc's own alignment; enough for any vector load or TMA box.
inline constexpr int64_t kWorkspaceAlign = 256;

// A buffer that must stay untouched from launch step `first` to `last`, both
// included.
struct Lifetime {
  int first = 0;
  int last = 0;
  int64_t size_bytes = 0;
};

struct WorkspaceLayout {
  std::vector<int64_t> offsets;  // of each buffer, multiples of the alignment
  int64_t size_bytes = 0;
};

// Lays buffers out so that none that live at the same step overlap: each at
// the lowest free place, larger ones first.
WorkspaceLayout LayOutWorkspace(const std::vector<Lifetime>& buffers);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_WORKSPACE_H_
