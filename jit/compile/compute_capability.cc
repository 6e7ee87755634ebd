#include "jit/compile/compute_capability.h"

#include <cstdlib>

namespace kiln {

int ComputeCapability(const Target& target) {
  return target.arch.rfind("sm_", 0) == 0 ? std::atoi(target.arch.c_str() + 3)
                                          : 0;
}

int64_t MaxSharedBytes(const Target& target) {
  constexpr int64_t kKiB = 1024;
  const int capability = ComputeCapability(target);
  if (capability < 75) return 48 * kKiB;
  if (capability == 75) return 64 * kKiB;
  if (capability == 80 || capability == 87) return 163 * kKiB;
  if (capability >= 90 && capability < 120) return 227 * kKiB;
  return 99 * kKiB;
}

int64_t ShareOfShared(int64_t bytes) {
  for (const int64_t kib : {8, 16, 32, 64, 100, 132, 164, 196, 228}) {
    if (bytes <= kib * 1024) return kib * 1024;
  }
  return bytes;
}

}  // namespace kiln
