#ifndef KILN_TESTS_CACHE_FAULTY_FILE_OPS_H_
#define KILN_TESTS_CACHE_FAULTY_FILE_OPS_H_

#include <memory>
#include <string>
#include <vector>

#include "cache/file_ops.h"

namespace kiln {

// The calls that can be made to fail.
enum class Call {
  kOpen,
  kPread,
  kWrite,
  kFdatasync,
  kFsync,
  kRename,
  kUnlink,
  kMkdir,
  kStat,
  kLock,
  kList
};

// Passes calls on, and makes the k-th one of a kind fail, once or from then
// on, with a given errno.
class FaultyFileOps : public FileOps {
 public:
  explicit FaultyFileOps(std::shared_ptr<FileOps> next)
      : next_(std::move(next)) {}

  // `k` counts from 1, from now on.
  void Fail(Call call, int64_t k, int error_number, bool from_then_on) {
    call_ = call;
    countdown_ = k;
    error_number_ = error_number;
    from_then_on_ = from_then_on;
    failures_ = 0;
  }
  // How many calls were made to fail since.
  int64_t failures() const { return failures_; }
  // By all reads so far.
  uint64_t bytes_asked_for() const { return bytes_asked_for_; }

  int Open(const std::string& path, int flags, mode_t mode) override {
    const int fault = Fault(Call::kOpen);
    return fault != 0 ? fault : next_->Open(path, flags, mode);
  }
  void Close(int fd) override { next_->Close(fd); }
  ssize_t Pread(int fd, char* buffer, size_t size, off_t offset) override {
    const int fault = Fault(Call::kPread);
    bytes_asked_for_ += size;
    return fault != 0 ? fault : next_->Pread(fd, buffer, size, offset);
  }
  ssize_t Write(int fd, const char* data, size_t size) override {
    const int fault = Fault(Call::kWrite);
    return fault != 0 ? fault : next_->Write(fd, data, size);
  }
  int Fdatasync(int fd) override {
    const int fault = Fault(Call::kFdatasync);
    return fault != 0 ? fault : next_->Fdatasync(fd);
  }
  int Fsync(int fd) override {
    const int fault = Fault(Call::kFsync);
    return fault != 0 ? fault : next_->Fsync(fd);
  }
  int Rename(const std::string& from, const std::string& to) override {
    const int fault = Fault(Call::kRename);
    return fault != 0 ? fault : next_->Rename(from, to);
  }
  int Unlink(const std::string& path) override {
    const int fault = Fault(Call::kUnlink);
    return fault != 0 ? fault : next_->Unlink(path);
  }
  int Mkdir(const std::string& path, mode_t mode) override {
    const int fault = Fault(Call::kMkdir);
    return fault != 0 ? fault : next_->Mkdir(path, mode);
  }
  int Lstat(const std::string& path, struct stat* status) override {
    const int fault = Fault(Call::kStat);
    return fault != 0 ? fault : next_->Lstat(path, status);
  }
  int Fstat(int fd, struct stat* status) override {
    const int fault = Fault(Call::kStat);
    return fault != 0 ? fault : next_->Fstat(fd, status);
  }
  int SetModified(const std::string& path, int64_t unix_ms) override {
    return next_->SetModified(path, unix_ms);
  }
  int TryLock(int fd) override {
    const int fault = Fault(Call::kLock);
    return fault != 0 ? fault : next_->TryLock(fd);
  }
  int List(const std::string& path, std::vector<std::string>* names) override {
    const int fault = Fault(Call::kList);
    return fault != 0 ? fault : next_->List(path, names);
  }

 private:
  int Fault(Call call) {
    if (call != call_ || countdown_ == 0) return 0;
    if (countdown_ > 1) {
      --countdown_;
      return 0;
    }
    if (!from_then_on_) countdown_ = 0;
    ++failures_;
    return -error_number_;
  }

  std::shared_ptr<FileOps> next_;
  Call call_ = Call::kOpen;
  int64_t countdown_ = 0;  // 0: never
  int error_number_ = 0;
  bool from_then_on_ = false;
  int64_t failures_ = 0;
  uint64_t bytes_asked_for_ = 0;
};

}  // namespace kiln

#endif  // KILN_TESTS_CACHE_FAULTY_FILE_OPS_H_
