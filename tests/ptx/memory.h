#ifndef KILN_TESTS_PTX_MEMORY_H_
#define KILN_TESTS_PTX_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kiln::ptx {

// Where shared memory begins in a block: 0 is never a place in it, and the
// driver keeps the first KiB for itself on sm_90.
inline constexpr uint32_t kSharedBase = 1024;

// From this bit on, an address of shared::cluster holds one more than the rank
// of the block; 0 is the block that uses it.
inline constexpr int kRankShift = 24;

// Global memory that kernels may touch: addresses of this process. Copies know
// the same writes.
class GlobalMemory {
 public:
  void Allow(const void* begin, int64_t size_bytes, bool is_writable) {
    const auto address = reinterpret_cast<uint64_t>(begin);
    const auto size = static_cast<uint64_t>(size_bytes);
    ranges_.push_back({address, address + size,
                       std::make_shared<Writers>(is_writable ? size : 0)});
  }

  // From here on a launch runs that follows those before.
  void BeginLaunch() { ++launch_; }

  // Whether this launch or the one before has written any of these bytes, which
  // may be accessed.
  bool IsUnsettled(uint64_t address, uint64_t size_bytes) const {
    for (const Range& range : ranges_) {
      if (!Holds(range, address, size_bytes)) continue;
      if (range.writers->empty()) return false;
      const auto first =
          range.writers->begin() + static_cast<int64_t>(address - range.begin);
      return std::any_of(first, first + static_cast<int64_t>(size_bytes),
                         [&](unsigned launch) { return launch_ - launch < 2; });
    }
    return false;
  }

  // Null unless all bytes lie in one range, at a multiple of `align`, a power
  // of two.
  std::byte* Find(uint64_t address, uint64_t size_bytes, uint64_t align,
                  bool writes) const {
    if ((address & (align - 1)) != 0) return nullptr;
    if (last_ < ranges_.size() && Holds(ranges_[last_], address, size_bytes)) {
      return Usable(ranges_[last_], address, size_bytes, writes);
    }
    for (last_ = 0; last_ < ranges_.size(); ++last_) {
      if (Holds(ranges_[last_], address, size_bytes)) {
        return Usable(ranges_[last_], address, size_bytes, writes);
      }
    }
    return nullptr;
  }

 private:
  // The last launch that wrote each byte, or 0; none where nobody may.
  using Writers = std::vector<uint16_t>;

  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::shared_ptr<Writers> writers;
  };

  static bool Holds(const Range& range, uint64_t address, uint64_t size) {
    return address >= range.begin && address < range.end &&
           size <= range.end - address;
  }
  std::byte* Usable(const Range& range, uint64_t address, uint64_t size,
                    bool writes) const {
    if (writes) {
      if (range.writers->empty()) return nullptr;
      std::fill_n(
          range.writers->begin() + static_cast<int64_t>(address - range.begin),
          size, static_cast<uint16_t>(launch_));
    }
    return reinterpret_cast<std::byte*>(address);
  }

  std::vector<Range> ranges_;
  unsigned launch_ = 2;      // of fewer than 65,536
  mutable size_t last_ = 0;  // where the last access was found
};

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_MEMORY_H_
