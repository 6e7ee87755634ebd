#include "cache/atomic_file.h"

#include <fcntl.h>

#include <cerrno>

#include "cache/errors.h"

namespace kiln {
namespace {

absl::Status WriteAll(FileOps* ops, int fd, const std::string& path,
                      std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = RetryInterrupted(
        [&] { return ops->Write(fd, contents.data(), contents.size()); });
    if (written < 0) {
      return WriteFailedError("write", path, static_cast<int>(-written));
    }
    // Nothing written and no error: treat it as a full disk, do not spin.
    if (written == 0) return WriteFailedError("write", path, ENOSPC);
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteAndFlush(FileOps* ops, const std::string& path,
                           std::string_view contents) {
  const FileHandle file =
      OpenFile(ops, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (file.get() == -ENOENT) return EntryMissingError();
  if (!file.valid()) return WriteFailedError("open", path, -file.get());

  absl::Status status = WriteAll(ops, file.get(), path, contents);
  if (!status.ok()) return status;
  const int flushed =
      RetryInterrupted([&] { return ops->Fdatasync(file.get()); });
  if (flushed < 0) return WriteFailedError("fdatasync", path, -flushed);
  return absl::OkStatus();
}

absl::Status RenameDurably(FileOps* ops, const std::string& from,
                           const std::string& to) {
  const int renamed = RetryInterrupted([&] { return ops->Rename(from, to); });
  if (renamed < 0) return WriteFailedError("rename", to, -renamed);
  absl::Status status = FlushDirectory(ops, to.substr(0, to.rfind('/')));
  if (!status.ok()) ops->Unlink(to);
  return status;
}

}  // namespace

absl::Status WriteFileAtomically(FileOps* ops, const std::string& path,
                                 const std::string& temp_path,
                                 std::string_view contents) {
  absl::Status status = WriteAndFlush(ops, temp_path, contents);
  if (status.ok()) status = RenameDurably(ops, temp_path, path);
  if (!status.ok() && !absl::IsNotFound(status)) ops->Unlink(temp_path);
  return status;
}

absl::Status FlushDirectory(FileOps* ops, const std::string& path) {
  const FileHandle directory = OpenFile(ops, path, O_RDONLY | O_DIRECTORY);
  if (!directory.valid()) {
    return WriteFailedError("open", path, -directory.get());
  }
  const int flushed =
      RetryInterrupted([&] { return ops->Fsync(directory.get()); });
  if (flushed < 0) return WriteFailedError("fsync", path, -flushed);
  return absl::OkStatus();
}

}  // namespace kiln
