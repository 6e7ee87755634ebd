#ifndef KILN_CLIENT_FILE_DESCRIPTOR_H_
#define KILN_CLIENT_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace kiln::client {

// Owns one file descriptor. A resource.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset() { FileDescriptor().swap(*this); }
  void swap(FileDescriptor& other) noexcept { std::swap(fd_, other.fd_); }

 private:
  int fd_ = -1;
};

}  // namespace kiln::client

#endif  // KILN_CLIENT_FILE_DESCRIPTOR_H_
