#include "cache/file_ops.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string_view>

namespace kiln {
namespace {

template <typename Result>
Result OrErrno(Result result) {
  return result < 0 ? -errno : result;
}

}  // namespace

int FileOps::Open(const std::string& path, int flags, mode_t mode) {
  return OrErrno(open(path.c_str(), flags, mode));
}

void FileOps::Close(int fd) { close(fd); }

ssize_t FileOps::Pread(int fd, char* buffer, size_t size, off_t offset) {
  return OrErrno(pread(fd, buffer, size, offset));
}

ssize_t FileOps::Write(int fd, const char* data, size_t size) {
  return OrErrno(write(fd, data, size));
}

int FileOps::Fdatasync(int fd) { return OrErrno(fdatasync(fd)); }

int FileOps::Fsync(int fd) { return OrErrno(fsync(fd)); }

int FileOps::Rename(const std::string& from, const std::string& to) {
  return OrErrno(rename(from.c_str(), to.c_str()));
}

int FileOps::Unlink(const std::string& path) {
  return OrErrno(unlink(path.c_str()));
}

int FileOps::Mkdir(const std::string& path, mode_t mode) {
  return OrErrno(mkdir(path.c_str(), mode));
}

int FileOps::Lstat(const std::string& path, struct stat* status) {
  return OrErrno(lstat(path.c_str(), status));
}

int FileOps::Fstat(int fd, struct stat* status) {
  return OrErrno(fstat(fd, status));
}

int FileOps::SetModified(const std::string& path, int64_t unix_ms) {
  struct timespec times[2] = {};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = unix_ms / 1000;
  times[1].tv_nsec = unix_ms % 1000 * 1'000'000;
  return OrErrno(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW));
}

int FileOps::TryLock(int fd) { return OrErrno(flock(fd, LOCK_EX | LOCK_NB)); }

int FileOps::List(const std::string& path, std::vector<std::string>* names) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()),
                                                      closedir);
  if (directory == nullptr) return -errno;
  names->clear();
  for (;;) {
    errno = 0;
    const struct dirent* entry = readdir(directory.get());
    if (entry == nullptr) return -errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names->emplace_back(name);
  }
}

int64_t ModifiedUnixMs(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1000 +
         status.st_mtim.tv_nsec / 1'000'000;
}

FileHandle OpenFile(FileOps* ops, const std::string& path, int flags,
                    mode_t mode) {
  return FileHandle(ops, RetryInterrupted([&] {
                      return ops->Open(path, flags | O_CLOEXEC, mode);
                    }));
}

}  // namespace kiln
