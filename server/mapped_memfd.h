#ifndef KILN_SERVER_MAPPED_MEMFD_H_
#define KILN_SERVER_MAPPED_MEMFD_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"

namespace kiln {

// A client's memfd, mapped whole for reading and writing. A resource: unmapped
// on destruction. The client may write to it at any time, but not take it
// away: that the size is sealed is checked.
class MappedMemfd {
 public:
  // Closes `descriptor` in any case; the mapping needs it no more.
  //
  // Errors: INVALID_ARGUMENT: no memfd, empty, not sealed against shrinking
  // (a page cut off would kill this process at its next touch), or not
  // writable; RESOURCE_EXHAUSTED: no address space.
  static absl::StatusOr<MappedMemfd> Map(FileDescriptor descriptor);
  MappedMemfd(MappedMemfd&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(other.size_bytes_),
        inode_(other.inode_) {}
  MappedMemfd& operator=(MappedMemfd&&) = delete;
  ~MappedMemfd();

  std::byte* data() const { return data_; }  // page aligned
  int64_t size_bytes() const { return size_bytes_; }
  // The same for two mappings of the same memory.
  ino_t inode() const { return inode_; }

 private:
  MappedMemfd(std::byte* data, int64_t size_bytes, ino_t inode)
      : data_(data), size_bytes_(size_bytes), inode_(inode) {}

  std::byte* data_;
  int64_t size_bytes_;
  ino_t inode_;
};

}  // namespace kiln

#endif  // KILN_SERVER_MAPPED_MEMFD_H_
