#include "server/buffer_registry.h"

#include <fmt/format.h>

#include <utility>

#include "jit/plan/errors.h"
#include "server/errors.h"
#include "server/random_id.h"

namespace kiln {
namespace {

// Bytes of a memory that a slot is bound to. Checked: begin + size fits.
struct Range {
  std::string_view identity;
  int64_t begin;
  int64_t size;
  bool output;
  size_t binding;  // index in the request
};

bool Overlap(const Range& a, const Range& b) {
  return a.identity == b.identity && a.begin < b.begin + b.size &&
         b.begin < a.begin + a.size;
}

std::string Path(size_t binding, std::string_view field) {
  return fmt::format("bindings[{}].{}", binding, field);
}

absl::Status CheckSlots(std::span<const Slot> slots,
                        std::span<const BufferRegistry::Binding> bindings) {
  std::vector<bool> bound(slots.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    const int slot = bindings[i].slot;
    if (slot < 0 || slot >= static_cast<int>(slots.size())) {
      return InvalidField(Path(i, "slot"), "is no slot of the artifact",
                          fmt::to_string(slot),
                          fmt::format("0 to {}", slots.size() - 1));
    }
    if (bound[slot]) {
      return InvalidField(Path(i, "slot"), "is bound twice",
                          fmt::to_string(slot), "once");
    }
    bound[slot] = true;
  }
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    if (!bound[slot]) {
      return InvalidField("bindings",
                          fmt::format("leave slot {} unbound", slot),
                          fmt::format("{} bindings", bindings.size()),
                          fmt::format("one for each of {}", slots.size()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRange(size_t index, int64_t offset_bytes, const Slot& slot,
                        const BufferRegistry::Buffer& buffer) {
  if (offset_bytes < 0 || offset_bytes > buffer.size_bytes ||
      slot.min_bytes > buffer.size_bytes - offset_bytes) {
    return InvalidField(
        Path(index, "offset_bytes"),
        fmt::format("puts {} bytes outside the buffer", slot.min_bytes),
        fmt::to_string(offset_bytes),
        fmt::format("0 to {}", buffer.size_bytes - slot.min_bytes));
  }
  const int64_t address = buffer.offset_bytes + offset_bytes;
  if (slot.align > 1 && address % slot.align != 0) {
    return InvalidField(Path(index, "offset_bytes"), "is misaligned",
                        fmt::format("{} in the memory", address),
                        fmt::format("multiples of {}", slot.align));
  }
  return absl::OkStatus();
}

absl::Status CheckOverlap(std::span<const Range> ranges) {
  for (const Range& output : ranges) {
    if (!output.output) continue;
    for (const Range& other : ranges) {
      if (&other == &output || !Overlap(output, other)) continue;
      return InvalidField(
          Path(output.binding, "offset_bytes"),
          fmt::format("makes an output overlap bindings[{}]", other.binding),
          fmt::to_string(output.begin), "outputs overlap nothing");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int64_t> ResolveRange(int64_t offset_bytes, int64_t size_bytes,
                                     int64_t memory_bytes) {
  if (offset_bytes < 0 || offset_bytes >= memory_bytes) {
    return InvalidField("offset_bytes", "is outside the memory",
                        fmt::to_string(offset_bytes),
                        fmt::format("0 to {}", memory_bytes - 1));
  }
  const int64_t rest = memory_bytes - offset_bytes;
  if (size_bytes < 0 || size_bytes > rest) {
    return InvalidField("size_bytes", "does not fit in the memory",
                        fmt::to_string(size_bytes),
                        fmt::format("0 to {}", rest));
  }
  return size_bytes == 0 ? rest : size_bytes;
}

absl::StatusOr<std::string> BufferRegistry::Add(Buffer buffer) {
  if (closed_) return absl::FailedPreconditionError("The session has ended");
  if (static_cast<int>(entries_.size()) >= max_buffers_) {
    return TooMany("buffers in this session", max_buffers_);
  }
  const std::string id = ToHex(RandomBytes(16));
  entries_[id].buffer = std::move(buffer);
  return id;
}

absl::StatusOr<const BufferRegistry::Entry*> BufferRegistry::Find(
    const std::string& device, const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.removed) {
    return UnknownBuffer(id);
  }
  const Entry& entry = found->second;
  if (entry.buffer.device != device) {
    return WrongDevice(id, entry.buffer.device, device);
  }
  if (entry.lost) return LostBuffer(id);
  return &entry;
}

absl::StatusOr<BufferRegistry::Bound> BufferRegistry::Bind(
    const std::string& device, std::span<const Slot> slots,
    std::span<const Binding> bindings) {
  absl::Status status = CheckSlots(slots, bindings);
  if (!status.ok()) return status;

  Bound bound;
  bound.slots.resize(slots.size());
  std::vector<Range> ranges;
  std::vector<std::string> ids;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Binding& binding = bindings[i];
    const Slot& slot = slots[binding.slot];
    const absl::StatusOr<const Entry*> entry = Find(device, binding.buffer);
    if (!entry.ok()) return entry.status();
    const Buffer& buffer = (*entry)->buffer;
    status = CheckRange(i, binding.offset_bytes, slot, buffer);
    if (!status.ok()) return status;
    const int64_t begin = buffer.offset_bytes + binding.offset_bytes;
    bound.slots[binding.slot] = {buffer.memory, begin};
    ranges.push_back({buffer.identity, begin, slot.min_bytes,
                      slot.role == SlotRole::kOutput, i});
    ids.push_back(binding.buffer);
  }
  status = CheckOverlap(ranges);
  if (!status.ok()) return status;

  for (const std::string& id : ids) ++entries_[id].leases;
  bound.lease = ++last_lease_;
  leases_[bound.lease] = std::move(ids);
  return bound;
}

BufferRegistry::Freed BufferRegistry::Free(Entry entry) {
  Freed freed;
  freed.device = std::move(entry.buffer.device);
  if (!entry.lost) freed.memory = entry.buffer.memory;
  freed.waiters = std::move(entry.waiters);
  return freed;
}

std::vector<BufferRegistry::Freed> BufferRegistry::Release(uint64_t lease) {
  std::vector<Freed> freed;
  const auto held = leases_.find(lease);
  if (held == leases_.end()) return freed;
  for (const std::string& id : held->second) {
    const auto found = entries_.find(id);
    if (--found->second.leases > 0 || !found->second.removed) continue;
    freed.push_back(Free(std::move(found->second)));
    entries_.erase(found);
  }
  leases_.erase(held);
  return freed;
}

BufferRegistry::Freed BufferRegistry::Remove(const std::string& id,
                                             std::function<void()> waiter) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return {{}, {}, {std::move(waiter)}};
  Entry& entry = found->second;
  entry.waiters.push_back(std::move(waiter));
  entry.removed = true;
  if (entry.leases > 0) return {};
  Freed freed = Free(std::move(entry));
  entries_.erase(found);
  return freed;
}

std::vector<BufferRegistry::Freed> BufferRegistry::RemoveAll() {
  closed_ = true;
  std::vector<Freed> freed;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    entry->second.removed = true;
    if (entry->second.leases > 0) {
      ++entry;
      continue;
    }
    freed.push_back(Free(std::move(entry->second)));
    entry = entries_.erase(entry);
  }
  return freed;
}

void BufferRegistry::MarkLost(const std::string& device) {
  for (auto& [id, entry] : entries_) {
    if (entry.buffer.device == device) entry.lost = true;
  }
}

std::vector<BufferRegistry::Info> BufferRegistry::List() const {
  std::vector<Info> infos;
  for (const auto& [id, entry] : entries_) {
    if (entry.removed) continue;
    infos.push_back(
        {id, entry.buffer.device, entry.buffer.size_bytes, entry.leases});
  }
  return infos;
}

}  // namespace kiln
