#ifndef KILN_TESTS_CACHE_SIMULATED_DISK_H_
#define KILN_TESTS_CACHE_SIMULATED_DISK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache/file_ops.h"

namespace kiln {

// A file system in memory that knows what a power cut would leave. It promises
// no more than POSIX does: bytes are durable after fdatasync, names after fsync
// of their directory; what is not may be there, in any combination. A rename
// within a directory is atomic. Not thread-safe.
class SimulatedDisk : public FileOps {
 public:
  // What a crash does to bytes written since the last fdatasync.
  enum class DataLoss { kDropped, kHalf, kZeros, kNone };

  SimulatedDisk();

  // The disk as found after a crash now. Bit i of `kept_changes` tells whether
  // the i-th change of names since the last flush reached the disk.
  std::shared_ptr<SimulatedDisk> AfterCrash(uint64_t kept_changes,
                                            DataLoss loss) const;
  size_t unflushed_changes() const { return changes_.size(); }
  bool Exists(const std::string& path) const { return names_.count(path) != 0; }
  // All names and bytes: equal for equal disks.
  std::string Fingerprint() const;

  // Called after every call that changes or flushes anything.
  std::function<void()> after_step;
  // Lies told to find out whether a test notices.
  bool ignore_fdatasync = false;
  bool ignore_fsync = false;
  int64_t now_unix_ms = 1'000'000'000'000;

  int Open(const std::string& path, int flags, mode_t mode) override;
  void Close(int fd) override;
  ssize_t Pread(int fd, char* buffer, size_t size, off_t offset) override;
  ssize_t Write(int fd, const char* data, size_t size) override;
  int Fdatasync(int fd) override;
  int Fsync(int fd) override;
  int Rename(const std::string& from, const std::string& to) override;
  int Unlink(const std::string& path) override;
  int Mkdir(const std::string& path, mode_t mode) override;
  int Lstat(const std::string& path, struct stat* status) override;
  int Fstat(int fd, struct stat* status) override;
  int SetModified(const std::string& path, int64_t unix_ms) override;
  int TryLock(int fd) override;
  int List(const std::string& path, std::vector<std::string>* names) override;

 private:
  struct Inode {
    bool directory = false;
    std::string data;
    std::string durable;
    int64_t modified_unix_ms = 0;
    int locked_by = -1;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;
  struct Change {
    std::string removed;  // may be empty
    std::string added;    // may be empty
    std::shared_ptr<Inode> inode;
  };
  struct OpenFileState {
    std::string path;
    std::shared_ptr<Inode> inode;
  };

  static void Apply(const Change& change, Names* names);
  std::shared_ptr<Inode> Find(const std::string& path) const;
  std::shared_ptr<Inode> Create(const std::string& path, bool directory);
  int Step(int result);

  Names names_;
  Names durable_names_;
  std::vector<Change> changes_;
  std::map<int, OpenFileState> open_;
  int next_fd_ = 100;
};

}  // namespace kiln

#endif  // KILN_TESTS_CACHE_SIMULATED_DISK_H_
