#include "client/memory_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "jit/plan/errors.h"

namespace kiln::client {
namespace {

absl::Status NoMemory(int64_t size_bytes) {
  return absl::ResourceExhaustedError(
      fmt::format("No shared memory of {} bytes: {}", size_bytes,
                  std::generic_category().message(errno)));
}

}  // namespace

MemoryFile::MemoryFile(FileDescriptor fd, void* data, int64_t size_bytes)
    : fd_(std::move(fd)), data_(data), size_bytes_(size_bytes) {}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

absl::StatusOr<MemoryFile> MemoryFile::Create(int64_t size_bytes) {
  if (size_bytes <= 0) {
    return InvalidField("size_bytes", "a buffer holds at least one byte",
                        std::to_string(size_bytes), "1 or more");
  }
  FileDescriptor fd(
      memfd_create("kiln-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool sized = fd.valid() && ftruncate(fd.get(), size_bytes) == 0 &&
                     fcntl(fd.get(), F_ADD_SEALS,
                           F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (!sized) return NoMemory(size_bytes);
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd.get(), 0);
  if (data == MAP_FAILED) return NoMemory(size_bytes);
  return MemoryFile(std::move(fd), data, size_bytes);
}

}  // namespace kiln::client
