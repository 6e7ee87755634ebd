#ifndef KILN_TESTS_PTX_ACCESS_H_
#define KILN_TESTS_PTX_ACCESS_H_

#include <string>

#include "tests/ptx/machine.h"

namespace kiln::ptx {

enum class Space : uint8_t { kGlobal, kShared, kCluster, kGeneric, kParameter };

// The places that an address takes among the operands.
inline constexpr int kAddressPlaces = 3;

// Of the address that begins at `operand`.
inline uint64_t AddressOf(const Warp& warp, const Place* operand, int lane) {
  const std::byte* const base = Source(warp, operand[0]);
  if (operand[2] != 0) return Get<uint64_t>(base, lane) + operand[1];
  return Get<uint32_t>(base, lane) + static_cast<uint32_t>(operand[1]);
}

// Bytes of shared memory, of the block or of the cluster's; null if they lie
// outside or not at a multiple of `align`, a power of two.
inline std::byte* FindShared(Warp& warp, uint64_t address, uint64_t size,
                             uint64_t align, bool may_be_remote) {
  Block* block = warp.block;
  const uint64_t rank = address >> kRankShift;
  if (rank > 0 && may_be_remote) {
    if (rank > block->cluster->blocks.size()) return nullptr;
    block = block->cluster->blocks[rank - 1].get();
    address &= (1u << kRankShift) - 1;
  }
  const uint64_t offset = address - kSharedBase;
  const uint64_t limit = block->shared.size();
  if ((address & (align - 1)) != 0 || offset >= limit ||
      limit - offset < size) {
    return nullptr;
  }
  return block->shared.data() + offset;
}

// Bytes in memory. Fails and returns null unless all may be accessed.
std::byte* Find(Warp& warp, const Instruction& i, int lane, Space space,
                uint64_t address, uint64_t size, uint64_t align, bool writes);

// The same; where nothing forbids the access, it takes less time.
template <Space kSpace>
std::byte* FindIn(Warp& warp, const Instruction& i, int lane, uint64_t address,
                  uint64_t size, uint64_t align, bool writes) {
  std::byte* found = nullptr;
  if constexpr (kSpace == Space::kShared) {
    found = FindShared(warp, address, size, align, false);
  } else if constexpr (kSpace == Space::kParameter) {
    return const_cast<std::byte*>(warp.grid->parameters) + address;
  } else if constexpr (kSpace == Space::kGlobal) {
    if ((warp.settled >> lane & 1) != 0) {
      found = warp.grid->memory->Find(address, size, align, writes);
    }
  }
  if (found != nullptr) return found;
  return Find(warp, i, lane, kSpace, address, size, align, writes);
}

// Fails, for no barrier or fence orders an access to `bytes` of the block's
// shared memory after that of warp `other`.
void FailOrder(Warp& warp, const Instruction& i, int lane,
               const std::byte* bytes, int other);

enum class Access : uint8_t { kRead, kWrite };

// The warp whose access to these bytes of the block's shared memory is not
// ordered before this one, or -1.
inline int FindUnordered(Warp& warp, Access access, const std::byte* bytes,
                         uint64_t size) {
  SharedRaces& races = warp.block->races;
  const auto offset = bytes - warp.block->shared.data();
  const auto length = static_cast<int64_t>(size);
  return access == Access::kRead ? races.Read(warp.index, offset, length)
                                 : races.Write(warp.index, offset, length);
}

// Fails if there is one.
inline void CheckOrder(Warp& warp, const Instruction& i, int lane,
                       Access access, const std::byte* bytes, uint64_t size) {
  const int other = FindUnordered(warp, access, bytes, size);
  if (other >= 0) FailOrder(warp, i, lane, bytes, other);
}

// Whether all lanes are at it, and access neighbours of `size` bytes each.
inline bool AreNeighbours(const Warp& warp, const Place* operand, uint32_t mask,
                          uint64_t size) {
  if (mask != ~0u) return false;
  const uint64_t first = AddressOf(warp, operand, 0);
  if (AddressOf(warp, operand, kLanes - 1) != first + (kLanes - 1) * size) {
    return false;
  }
  for (int lane = 1; lane < kLanes - 1; ++lane) {
    if (AddressOf(warp, operand, lane) != first + lane * size) return false;
  }
  return true;
}

// The bytes of neighbours, or null: their lanes are to be looked at one by one,
// and then fail if they may not access them.
template <Space kSpace>
std::byte* FindNeighbours(Warp& warp, const Place* operand, uint32_t mask,
                          uint64_t size, Access access) {
  const bool writes = access == Access::kWrite;
  if (!AreNeighbours(warp, operand, mask, size)) return nullptr;
  const uint64_t address = AddressOf(warp, operand, 0);
  if constexpr (kSpace == Space::kGlobal) {
    if (warp.settled != ~0u) return nullptr;
    return warp.grid->memory->Find(address, kLanes * size, size, writes);
  } else if constexpr (kSpace == Space::kShared) {
    std::byte* const found =
        FindShared(warp, address, kLanes * size, size, false);
    if (found == nullptr) return nullptr;
    const int other = FindUnordered(warp, access, found, kLanes * size);
    return other < 0 ? found : nullptr;
  }
  return nullptr;
}

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_ACCESS_H_
