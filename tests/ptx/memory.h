#ifndef KILN_TESTS_PTX_MEMORY_H_
#define KILN_TESTS_PTX_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::ptx {

// Where shared memory begins in a block: 0 is never a place in it, and the
// driver keeps the first KiB for itself on sm_90.
inline constexpr uint32_t kSharedBase = 1024;

// From this bit on, an address of shared::cluster holds one more than the rank
// of the block; 0 is the block that uses it.
inline constexpr int kRankShift = 24;

// Global memory that kernels may touch: addresses of this process.
class GlobalMemory {
 public:
  void Allow(const void* begin, int64_t size_bytes, bool is_writable) {
    const auto address = reinterpret_cast<uint64_t>(begin);
    ranges_.push_back(
        {address, address + static_cast<uint64_t>(size_bytes), is_writable});
  }

  // Null unless all bytes lie in one range, at a multiple of `align`.
  std::byte* Find(uint64_t address, uint64_t size_bytes, uint64_t align,
                  bool writes) const {
    if (address % align != 0) return nullptr;
    if (last_ < ranges_.size() && Holds(ranges_[last_], address, size_bytes)) {
      return Usable(ranges_[last_], address, writes);
    }
    for (last_ = 0; last_ < ranges_.size(); ++last_) {
      if (Holds(ranges_[last_], address, size_bytes)) {
        return Usable(ranges_[last_], address, writes);
      }
    }
    return nullptr;
  }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    bool is_writable = false;
  };

  static bool Holds(const Range& range, uint64_t address, uint64_t size) {
    return address >= range.begin && address < range.end &&
           size <= range.end - address;
  }
  static std::byte* Usable(const Range& range, uint64_t address, bool writes) {
    if (writes && !range.is_writable) return nullptr;
    return reinterpret_cast<std::byte*>(address);
  }

  std::vector<Range> ranges_;
  mutable size_t last_ = 0;  // where the last access was found
};

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_MEMORY_H_
