#include "server/cpu_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <utility>
#include <vector>

#include "jit/plan/errors.h"
#include "jit/plan/reference.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

std::string SlotPath(int slot) { return fmt::format("slots[{}]", slot); }

// Type and extents of every slot: the inputs, then the outputs.
absl::StatusOr<std::vector<TensorDesc>> SlotsOf(const Plan& plan) {
  const auto values = ValidatePlan(plan);
  if (!values.ok()) return values.status();
  std::vector<TensorDesc> slots;
  for (const PlanInput& input : plan.inputs) slots.push_back(input.desc);
  for (const PlanOutput& output : plan.outputs) {
    TensorDesc desc = (*values)[output.value.index];
    desc.dtype = output.dtype;
    slots.push_back(std::move(desc));
  }
  return slots;
}

}  // namespace

// Where a slot lies.
struct CpuBackend::Range {
  std::byte* data = nullptr;
  ino_t inode = 0;
  int64_t begin = 0;  // in the memory
  int64_t end = 0;

  bool Overlaps(const Range& other) const {
    return inode == other.inode && begin < other.end && other.begin < end;
  }
};

DeviceDescription CpuBackend::Describe() const {
  DeviceDescription description;
  description.device = "cpu";
  description.name = "reference evaluator in double";
  description.target = Target{"cpu", 0};
  description.memory_bytes =
      int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return description;
}

absl::StatusOr<OpenedMemory> CpuBackend::Open(MemorySource source) {
  const auto* memfd = std::get_if<MemoryDescriptor>(&source);
  if (memfd == nullptr || memfd->fd < 0) {
    return absl::InvalidArgumentError(
        "The device cpu takes memory by memfd only.");
  }
  auto mapped = MappedMemfd::Map(FileDescriptor(memfd->fd));
  if (!mapped.ok()) return mapped.status();
  OpenedMemory opened;
  opened.id = next_id_++;
  opened.size_bytes = mapped->size_bytes();
  memory_.emplace(opened.id, *std::move(mapped));
  return opened;
}

void CpuBackend::Close(uint64_t memory) { memory_.erase(memory); }

absl::StatusOr<CpuBackend::Range> CpuBackend::Resolve(
    int slot, const TensorDesc& desc, const SlotBinding& binding) const {
  const auto found = memory_.find(binding.memory);
  if (found == memory_.end()) {
    return absl::FailedPreconditionError(
        fmt::format("{} is bound to memory that is not open.", SlotPath(slot)));
  }
  const MappedMemfd& memory = found->second;
  const int64_t size = SizeBytes(desc);
  if (size > memory.size_bytes() || binding.offset_bytes < 0 ||
      binding.offset_bytes > memory.size_bytes() - size) {
    return InvalidField(
        SlotPath(slot), "the tensor lies outside its memory",
        fmt::format("{} bytes at offset {}", size, binding.offset_bytes),
        fmt::format("0 to {}", memory.size_bytes()));
  }
  if (binding.offset_bytes % ElementSize(desc.dtype) != 0) {
    return InvalidField(
        SlotPath(slot), "the tensor is misaligned",
        fmt::format("offset {}", binding.offset_bytes),
        fmt::format("a multiple of {}", ElementSize(desc.dtype)));
  }
  Range range;
  range.data = memory.data() + binding.offset_bytes;
  range.inode = memory.inode();
  range.begin = binding.offset_bytes;
  range.end = binding.offset_bytes + size;
  return range;
}

absl::StatusOr<std::vector<CpuBackend::Range>> CpuBackend::ResolveAll(
    const Plan& plan, const ExecuteJob& job) const {
  const auto descs = SlotsOf(plan);
  if (!descs.ok()) return descs.status();
  if (job.slots.size() != descs->size()) {
    return InvalidField("slots", "not every slot is bound once",
                        std::to_string(job.slots.size()),
                        std::to_string(descs->size()));
  }
  std::vector<Range> ranges;
  for (size_t i = 0; i < descs->size(); ++i) {
    auto range = Resolve(static_cast<int>(i), (*descs)[i], job.slots[i]);
    if (!range.ok()) return range.status();
    ranges.push_back(*range);
  }
  for (size_t out = plan.inputs.size(); out < ranges.size(); ++out) {
    for (size_t other = 0; other < out; ++other) {
      if (!ranges[out].Overlaps(ranges[other])) continue;
      return InvalidField(SlotPath(static_cast<int>(out)),
                          "an output overlaps another slot",
                          SlotPath(static_cast<int>(other)), "no overlap");
    }
  }
  return ranges;
}

absl::StatusOr<int64_t> CpuBackend::Execute(const Artifact& artifact,
                                            const ExecuteJob& job) {
  if (!artifact.target.is_cpu()) {
    return absl::FailedPreconditionError(fmt::format(
        "The artifact is for another target (got {}, allowed: cpu).",
        ToString(artifact.target)));
  }
  const Plan& plan = artifact.canonical_plan;
  const auto ranges = ResolveAll(plan, job);
  if (!ranges.ok()) return ranges.status();
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (size_t i = 0; i < ranges->size(); ++i) {
    std::byte* data = (*ranges)[i].data;
    if (i < plan.inputs.size()) {
      inputs.push_back(data);
    } else {
      outputs.push_back(data);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  absl::Status evaluated = EvaluateReference(plan, inputs, outputs);
  if (!evaluated.ok()) return evaluated;
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace kiln
