#include "server/cuda_memory_table.h"

#include <utility>

#include "jit/run/ipc_memory.h"

namespace kiln {

absl::StatusOr<OpenedMemory> CudaMemoryTable::Open(const std::string& handle) {
  auto mapping = mappings_.find(handle);
  if (mapping == mappings_.end()) {
    absl::StatusOr<ImportedMemory> memory = ImportMemory(driver_, handle);
    if (!memory.ok()) return memory.status();
    mapping = mappings_
                  .emplace(handle, Mapping{std::move(memory->mapping),
                                           memory->size_bytes, 0})
                  .first;
  }
  ++mapping->second.references;
  const uint64_t id = next_id_++;
  ids_.emplace(id, mapping);
  return OpenedMemory{id, mapping->second.size_bytes};
}

void CudaMemoryTable::Close(uint64_t id) {
  const auto found = ids_.find(id);
  if (found == ids_.end()) return;
  const Mappings::iterator mapping = found->second;
  ids_.erase(found);
  if (--mapping->second.references == 0) mappings_.erase(mapping);
}

std::optional<CudaMemoryTable::Range> CudaMemoryTable::Find(uint64_t id) const {
  const auto found = ids_.find(id);
  if (found == ids_.end()) return std::nullopt;
  const Mapping& mapping = found->second->second;
  return Range{mapping.memory.get(), mapping.size_bytes};
}

}  // namespace kiln
