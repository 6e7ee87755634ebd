#ifndef KILN_CLIENT_CUDA_MEMORY_H_
#define KILN_CLIENT_CUDA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "client/cuda_context.h"
#include "jit/run/ipc_memory.h"

namespace kiln::client {

// INVALID_ARGUMENT if `bytes` are more than a buffer of `size_bytes` holds.
absl::Status CheckFits(size_t bytes, int64_t size_bytes);

// Memory of a GPU that this process owns or borrows. Keeps the context alive.
// Its functions make the context current for themselves. Not part of the
// public interface.
class CudaMemory {
 public:
  // Owned memory. The allocation is a multiple of 2 MiB: the driver cuts
  // smaller ones from a shared block, and CUDA IPC shares blocks as a whole,
  // with whatever else lies in them (CUDA C++ Programming Guide,
  // "Interprocess Communication").
  //
  // Errors: INVALID_ARGUMENT: not positive; RESOURCE_EXHAUSTED.
  static absl::StatusOr<CudaMemory> Allocate(
      std::shared_ptr<const CudaContext> context, int64_t size_bytes);
  // Memory that the caller frees, after this object.
  CudaMemory(std::shared_ptr<const CudaContext> context,
             driver::DevicePtr address, int64_t size_bytes);
  CudaMemory(CudaMemory&&) noexcept = default;
  CudaMemory& operator=(CudaMemory&&) = delete;
  ~CudaMemory();

  driver::DevicePtr address() const { return address_; }
  int64_t size_bytes() const { return size_bytes_; }
  const CudaContext& context() const { return *context_; }

  // The errors of kiln::ExportMemory.
  absl::StatusOr<ExportedMemory> Export() const;

  // Copy to and from the start of this memory, ordered after the work of the
  // legacy default stream; they return when the copy is complete.
  //
  // Errors: INVALID_ARGUMENT: more bytes than there are; those of CudaStatus.
  absl::Status CopyFrom(std::span<const std::byte> bytes) const;
  absl::Status CopyTo(std::span<std::byte> bytes) const;

 private:
  std::shared_ptr<const CudaContext> context_;
  DeviceMemory owned_;  // empty for borrowed memory
  driver::DevicePtr address_;
  int64_t size_bytes_;
};

}  // namespace kiln::client

#endif  // KILN_CLIENT_CUDA_MEMORY_H_
