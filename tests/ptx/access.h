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
// outside.
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
  if (address % align != 0 || offset >= limit || limit - offset < size) {
    return nullptr;
  }
  return block->shared.data() + offset;
}

// Bytes in memory. Fails and returns null unless all may be accessed.
std::byte* Find(Warp& warp, const Instruction& i, int lane, Space space,
                uint64_t address, uint64_t size, uint64_t align, bool writes);

// Fails, for no barrier or fence orders an access to `bytes` of the block's
// shared memory after that of warp `other`.
void FailOrder(Warp& warp, const Instruction& i, int lane,
               const std::byte* bytes, int other);

enum class Access : uint8_t { kRead, kWrite };

// Fails if another warp's access to these bytes of the block's shared memory is
// not ordered before this one.
inline void CheckOrder(Warp& warp, const Instruction& i, int lane,
                       Access access, const std::byte* bytes, uint64_t size) {
  SharedRaces& races = warp.block->races;
  const auto offset = bytes - warp.block->shared.data();
  const auto length = static_cast<int64_t>(size);
  const int other = access == Access::kRead
                        ? races.Read(warp.index, offset, length)
                        : races.Write(warp.index, offset, length);
  if (other >= 0) FailOrder(warp, i, lane, bytes, other);
}

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_ACCESS_H_
