#ifndef KILN_PROTO_FILE_DESCRIPTOR_H_
#define KILN_PROTO_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace kiln {

// Owns one descriptor, such as either end of the socket holds, and closes it.
// A resource; negative: owns nothing.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1) {
    if (fd_ >= 0 && fd_ != fd) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace kiln

#endif  // KILN_PROTO_FILE_DESCRIPTOR_H_
