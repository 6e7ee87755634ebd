#include "server/mapped_memfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace kiln {
namespace {

absl::Status CheckSeals(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return absl::InvalidArgumentError(
        fmt::format("The descriptor is no memfd that can be sealed ({}).",
                    std::strerror(errno)));
  }
  if ((seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError(
        "The memfd is not sealed against shrinking; add F_SEAL_SHRINK with "
        "fcntl(F_ADD_SEALS) before registering it.");
  }
  return absl::OkStatus();
}

absl::Status CannotMap(int64_t size_bytes, int error) {
  const std::string message = fmt::format(
      "The memfd of {} bytes cannot be mapped for reading and writing ({}).",
      size_bytes, std::strerror(error));
  return error == ENOMEM || error == EAGAIN
             ? absl::ResourceExhaustedError(message)
             : absl::InvalidArgumentError(message);
}

}  // namespace

absl::StatusOr<MappedMemfd> MappedMemfd::Map(FileDescriptor descriptor) {
  absl::Status sealed = CheckSeals(descriptor.get());
  if (!sealed.ok()) return sealed;
  struct stat info {};
  if (fstat(descriptor.get(), &info) != 0 || info.st_size <= 0) {
    return absl::InvalidArgumentError(
        fmt::format("The memfd is empty (got {} bytes, allowed: at least 1).",
                    info.st_size));
  }
  void* data = mmap(nullptr, static_cast<size_t>(info.st_size),
                    PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (data == MAP_FAILED) return CannotMap(info.st_size, errno);
  return MappedMemfd(static_cast<std::byte*>(data), info.st_size, info.st_ino);
}

MappedMemfd::~MappedMemfd() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_bytes_));
}

}  // namespace kiln
