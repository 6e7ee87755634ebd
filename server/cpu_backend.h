#ifndef KILN_SERVER_CPU_BACKEND_H_
#define KILN_SERVER_CPU_BACKEND_H_

#include <map>
#include <string>

#include "server/execution_backend.h"
#include "server/mapped_memfd.h"

namespace kiln {

// The reference device: evaluates an artifact's canonical plan in double over
// clients' memfds. Slow, right, and there on every host; what every GPU kernel
// is compared with. Knows no sessions.
class CpuBackend : public ExecutionBackend {
 public:
  DeviceDescription Describe() const override;
  // Errors: those of MappedMemfd::Map; INVALID_ARGUMENT for an IPC handle.
  absl::StatusOr<OpenedMemory> Open(MemorySource source) override;
  void Close(uint64_t memory) override;
  // Errors: FAILED_PRECONDITION: an artifact of another target, or memory that
  // is not open; INVALID_ARGUMENT with the slot's path: not as many slots as
  // tensors, a range outside its memory, a misaligned offset, an output that
  // overlaps anything; those of EvaluateReference.
  absl::StatusOr<int64_t> Execute(const Artifact& artifact,
                                  const ExecuteJob& job) override;
  void EndSession(const std::string&) override {}
  bool poisoned() const override { return false; }

 private:
  struct Range;
  absl::StatusOr<Range> Resolve(int slot, const TensorDesc& desc,
                                const SlotBinding& binding) const;
  absl::StatusOr<std::vector<Range>> ResolveAll(const Plan& plan,
                                                const ExecuteJob& job) const;

  std::map<uint64_t, MappedMemfd> memory_;
  uint64_t next_id_ = 1;
};

}  // namespace kiln

#endif  // KILN_SERVER_CPU_BACKEND_H_
