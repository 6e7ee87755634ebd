#ifndef KILN_TESTS_SERVER_SEALED_MEMORY_H_
#define KILN_TESTS_SERVER_SEALED_MEMORY_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "proto/file_descriptor.h"
#include "server/execution_backend.h"

namespace kiln {

// A client's memfd of floats.
class SealedMemory {
 public:
  explicit SealedMemory(int64_t size_bytes, int seals = F_SEAL_SHRINK)
      : fd_(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (ftruncate(fd_.get(), size_bytes) != 0) abort();
    if (seals != 0 && fcntl(fd_.get(), F_ADD_SEALS, seals) != 0) abort();
  }

  // A descriptor of its own, for a callee to own.
  MemoryDescriptor Share() const { return {dup(fd_.get())}; }

  void Write(int64_t offset_bytes, const std::vector<float>& values) {
    const size_t size = values.size() * sizeof(float);
    if (pwrite(fd_.get(), values.data(), size, offset_bytes) !=
        static_cast<ssize_t>(size)) {
      abort();
    }
  }

  std::vector<float> Read(int64_t offset_bytes, int count) const {
    std::vector<float> values(count);
    if (pread(fd_.get(), values.data(), count * sizeof(float), offset_bytes) <
        0) {
      abort();
    }
    return values;
  }

 private:
  FileDescriptor fd_;
};

}  // namespace kiln

#endif  // KILN_TESTS_SERVER_SEALED_MEMORY_H_
