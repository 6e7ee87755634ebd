#ifndef KILN_CACHE_FILE_OPS_H_
#define KILN_CACHE_FILE_OPS_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

// Every system call by which the cache touches the disk. This class makes
// them; tests derive from it to fail the k-th one or to simulate a crash.
// Each returns what the call returns, or -errno. Thread-safe.
class FileOps {
 public:
  virtual ~FileOps() = default;

  virtual int Open(const std::string& path, int flags, mode_t mode);
  virtual void Close(int fd);
  virtual ssize_t Pread(int fd, char* buffer, size_t size, off_t offset);
  virtual ssize_t Write(int fd, const char* data, size_t size);
  virtual int Fdatasync(int fd);
  virtual int Fsync(int fd);  // used on directories
  virtual int Rename(const std::string& from, const std::string& to);
  virtual int Unlink(const std::string& path);
  virtual int Mkdir(const std::string& path, mode_t mode);
  virtual int Lstat(const std::string& path, struct stat* status);
  virtual int Fstat(int fd, struct stat* status);
  // Sets the modification time; never follows a symbolic link.
  virtual int SetModified(const std::string& path, int64_t unix_ms);
  // flock(2), exclusive, without waiting. Ends with the descriptor.
  virtual int TryLock(int fd);
  // Replaces `names` by those in a directory, without "." and "..", in no
  // order; incomplete if it fails.
  virtual int List(const std::string& path, std::vector<std::string>* names);
};

// Calls again while a signal interrupts. Not for Close: Linux has closed the
// descriptor by then.
template <typename Call>
auto RetryInterrupted(const Call& call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

// Milliseconds since 1970 of a file's last modification.
int64_t ModifiedUnixMs(const struct stat& status);

// Owns one file descriptor.
class FileHandle {
 public:
  FileHandle() = default;
  // Negative `fd`: owns none.
  FileHandle(FileOps* ops, int fd) : ops_(ops), fd_(fd) {}
  ~FileHandle() {
    if (fd_ >= 0) ops_->Close(fd_);
  }
  FileHandle(FileHandle&& other) noexcept
      : ops_(other.ops_), fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(ops_, other.ops_);
    std::swap(fd_, other.fd_);
    return *this;
  }

  // Also holds the negated errno of the Open that failed.
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  FileOps* ops_ = nullptr;
  int fd_ = -1;
};

// Opens with O_CLOEXEC added, again when interrupted.
FileHandle OpenFile(FileOps* ops, const std::string& path, int flags,
                    mode_t mode = 0);

}  // namespace kiln

#endif  // KILN_CACHE_FILE_OPS_H_
