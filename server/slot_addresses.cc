#include "server/slot_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "jit/run/launch_record.h"

namespace kiln {
namespace {

absl::StatusOr<driver::DevicePtr> AddressOf(const CudaMemoryTable& memory,
                                            size_t index, const Slot& slot,
                                            const SlotBinding& binding) {
  const std::optional<CudaMemoryTable::Range> range =
      memory.Find(binding.memory);
  if (!range.has_value()) {
    return absl::FailedPreconditionError(fmt::format(
        "Slot {} is bound to memory that is not open; register it again.",
        index));
  }
  if (!InRange(binding.offset_bytes, slot.min_bytes, range->size_bytes)) {
    return absl::InvalidArgumentError(fmt::format(
        "Slot {} does not lie inside its memory ({} bytes at {} of {}).", index,
        slot.min_bytes, binding.offset_bytes, range->size_bytes));
  }
  const driver::DevicePtr address = range->base + binding.offset_bytes;
  const int64_t align = std::max<int64_t>(slot.align, 1);
  if (address % align != 0) {
    return absl::InvalidArgumentError(
        fmt::format("Slot {} is misaligned (offset {}, alignment {}).", index,
                    binding.offset_bytes, align));
  }
  return address;
}

}  // namespace

absl::StatusOr<std::vector<driver::DevicePtr>> SlotAddresses(
    const CudaMemoryTable& memory, const std::vector<Slot>& slots,
    const std::vector<SlotBinding>& bindings) {
  if (bindings.size() != slots.size()) {
    return absl::InvalidArgumentError(
        fmt::format("The number of bound slots is wrong ({} of {}).",
                    bindings.size(), slots.size()));
  }
  std::vector<driver::DevicePtr> addresses;
  for (size_t i = 0; i < slots.size(); ++i) {
    absl::StatusOr<driver::DevicePtr> address =
        AddressOf(memory, i, slots[i], bindings[i]);
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  return addresses;
}

}  // namespace kiln
