#ifndef KILN_CLIENT_MEMORY_FILE_H_
#define KILN_CLIENT_MEMORY_FILE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"

namespace kiln::client {

// A memfd of fixed size, mapped. The seal against shrinking is what lets
// another process map it without fear of SIGBUS. A resource.
class MemoryFile {
 public:
  // Zero-filled. Errors: INVALID_ARGUMENT: not positive; RESOURCE_EXHAUSTED.
  static absl::StatusOr<MemoryFile> Create(int64_t size_bytes);
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  ~MemoryFile();

  int fd() const { return fd_.get(); }
  void* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  MemoryFile(FileDescriptor fd, void* data, int64_t size_bytes);
  FileDescriptor fd_;
  void* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace kiln::client

#endif  // KILN_CLIENT_MEMORY_FILE_H_
