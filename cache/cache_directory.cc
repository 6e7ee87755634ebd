#include "cache/cache_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <spdlog/spdlog.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cache/atomic_file.h"
#include "cache/digest.h"
#include "cache/errors.h"
#include "cache/lock_holder.h"

namespace kiln {
namespace {

constexpr std::string_view kEntrySuffix = ".kiln";
constexpr std::string_view kTempPrefix = ".tmp-";
// Enough to study a failing disk by, too little to matter beside the entries.
constexpr size_t kMaxQuarantinedFiles = 64;
constexpr int64_t kMaxQuarantinedBytes = 16 << 20;

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Creates `path` and what is missing above it. What it creates above is made
// durable; `path` itself is the caller's to flush.
int MakeDirectory(FileOps* ops, const std::string& path) {
  const int made = RetryInterrupted([&] { return ops->Mkdir(path, 0700); });
  const std::string parent = ParentOf(path);
  if (made != -ENOENT || parent == path) return made;
  const int parent_made = MakeDirectory(ops, parent);
  if (parent_made < 0 && parent_made != -EEXIST) return parent_made;
  const absl::Status flushed = FlushDirectory(ops, ParentOf(parent));
  if (!flushed.ok()) spdlog::warn("{}", std::string(flushed.message()));
  return RetryInterrupted([&] { return ops->Mkdir(path, 0700); });
}

// The root decides who can tamper with what is below it.
absl::Status CheckRoot(FileOps* ops, const std::string& root) {
  struct stat status = {};
  const int result = ops->Lstat(root, &status);
  if (result < 0) return DirectoryAccessError(root, -result);
  if (S_ISLNK(status.st_mode)) return DirectorySymlinkError(root);
  if (!S_ISDIR(status.st_mode)) return DirectoryKindError(root);
  if (status.st_uid != geteuid()) {
    return DirectoryOwnerError(root, status.st_uid, geteuid());
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return DirectoryModeError(root, status.st_mode);
  }
  const FileHandle readable =
      OpenFile(ops, root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!readable.valid()) return DirectoryAccessError(root, -readable.get());
  return absl::OkStatus();
}

void WarnOnNetworkFileSystem(const std::string& root) {
  struct statfs status = {};
  if (statfs(root.c_str(), &status) == 0 && status.f_type == NFS_SUPER_MAGIC) {
    spdlog::warn(
        "The cache directory {} is on NFS, whose locks may not reach other "
        "hosts: give each host its own directory.",
        root);
  }
}

// Empty if the name is not that of an entry.
std::string KeyOfFileName(std::string_view name) {
  if (name.size() < kEntrySuffix.size()) return "";
  const size_t stem = name.size() - kEntrySuffix.size();
  if (name.substr(stem) != kEntrySuffix) return "";
  const std::string_view key = name.substr(0, stem);
  return IsCacheKey(key) ? std::string(key) : "";
}

// Whether `result` of a call tells all that there is: what has gone meanwhile,
// or is no directory, holds no entries.
bool IsRead(int result) {
  return result >= 0 || result == -ENOENT || result == -ENOTDIR;
}

// Deletes the file that has been in quarantine longest.
bool RemoveOldest(FileOps* ops, const std::string& directory,
                  const std::vector<std::string>& names) {
  std::vector<std::pair<int64_t, std::string>> by_age;
  for (const std::string& name : names) {
    struct stat status = {};
    ops->Lstat(directory + "/" + name, &status);
    by_age.emplace_back(status.st_ctim.tv_sec, directory + "/" + name);
  }
  std::sort(by_age.begin(), by_age.end());
  return std::any_of(by_age.begin(), by_age.end(), [&](const auto& file) {
    return ops->Unlink(file.second) == 0;
  });
}

// A free name for `key` in quarantine; empty if there is no room.
std::string QuarantinePath(FileOps* ops, const std::string& directory,
                           const std::string& key) {
  std::vector<std::string> names;
  if (ops->List(directory, &names) < 0) return "";
  if (names.size() >= kMaxQuarantinedFiles &&
      !RemoveOldest(ops, directory, names)) {
    return "";
  }
  for (size_t n = 0;; ++n) {
    const std::string name = fmt::format("{}.{}", key, n);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return directory + "/" + name;
    }
  }
}

}  // namespace

CacheDirectory::CacheDirectory(FileOps* ops, std::string root)
    : ops_(ops), root_(std::move(root)) {}

absl::StatusOr<CacheDirectory> CacheDirectory::Open(FileOps* ops,
                                                    std::string root) {
  // A trailing slash would make lstat look through a symbolic link.
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  const int made = MakeDirectory(ops, root);
  struct stat unused = {};
  if (made < 0 && ops->Lstat(root, &unused) == -ENOENT) {
    return DirectoryAccessError(root, -made);
  }
  absl::Status status = CheckRoot(ops, root);
  if (!status.ok()) return status;
  WarnOnNetworkFileSystem(root);
  CacheDirectory directory(ops, std::move(root));
  directory.TryBecomeWriter().IgnoreError();
  return directory;
}

absl::Status CacheDirectory::TryBecomeWriter() {
  if (is_writer_) return absl::OkStatus();
  if (!lock_.valid()) {
    lock_ =
        OpenFile(ops_, root_ + "/lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  }
  if (!lock_.valid()) return DirectoryLockError(root_, -lock_.get());
  const int result =
      RetryInterrupted([&] { return ops_->TryLock(lock_.get()); });
  if (result == -EWOULDBLOCK) {
    return DirectoryHeldError(root_, DescribeHolder());
  }
  if (result != 0) return DirectoryLockError(root_, -result);
  is_writer_ = true;
  WriteHolder();
  CreateLayout();
  return absl::OkStatus();
}

// For messages alone, so nothing hangs on its success. As wide as any id, so
// that it covers that of the holder before.
void CacheDirectory::WriteHolder() {
  const std::string text = fmt::format("{:<10}\n", getpid());
  ops_->Write(lock_.get(), text.data(), text.size());
}

std::string CacheDirectory::DescribeHolder() const {
  std::string text(16, '\0');
  const ssize_t size = ops_->Pread(lock_.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? size : 0);
  struct stat file = {};
  ops_->Fstat(lock_.get(), &file);
  return DescribeLockHolder(text, file);
}

// Flushes even what exists: a writer that died may have created it without.
void CacheDirectory::CreateLayout() {
  MakeDirectory(ops_, root_ + "/entries");
  MakeDirectory(ops_, root_ + "/quarantine");
  for (const std::string& path : {root_ + "/entries", root_, ParentOf(root_)}) {
    const absl::Status status = FlushDirectory(ops_, path);
    if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
  }
}

std::string CacheDirectory::EntryPath(const std::string& key) const {
  return fmt::format("{}/entries/{}/{}{}", root_, key.substr(0, 2), key,
                     kEntrySuffix);
}

std::string CacheDirectory::TempPath(const std::string& key,
                                     const std::string& suffix) const {
  return fmt::format("{}/entries/{}/{}{}", root_, key.substr(0, 2), kTempPrefix,
                     suffix);
}

// The result of FileOps::List.
int CacheDirectory::ListEntryDirectories(
    std::vector<std::string>* paths) const {
  const std::string entries = root_ + "/entries";
  const int listed =
      RetryInterrupted([&] { return ops_->List(entries, paths); });
  if (listed < 0 && listed != -ENOENT) {
    spdlog::warn(
        "{}",
        std::string(WriteFailedError("readdir", entries, -listed).message()));
  }
  for (std::string& name : *paths) name = entries + "/" + name;
  return listed;
}

CacheDirectory::Listing CacheDirectory::FindEntries() const {
  Listing found;
  std::vector<std::string> directories;
  found.is_whole = IsRead(ListEntryDirectories(&directories));
  for (const std::string& directory : directories) {
    std::vector<std::string> names;
    const int listed =
        RetryInterrupted([&] { return ops_->List(directory, &names); });
    found.is_whole &= IsRead(listed);
    for (const std::string& name : names) {
      const std::string key = KeyOfFileName(name);
      const std::string path = directory + "/" + name;
      if (key.empty() || EntryPath(key) != path) continue;
      struct stat status = {};
      const int known = ops_->Lstat(path, &status);
      found.is_whole &= IsRead(known);
      if (known < 0) continue;
      found.entries.push_back({key,
                               S_ISREG(status.st_mode) ? status.st_size : 0,
                               ModifiedUnixMs(status)});
    }
  }
  return found;
}

absl::Status CacheDirectory::MakeEntryDirectory(const std::string& key) {
  const std::string directory = ParentOf(EntryPath(key));
  const int made = MakeDirectory(ops_, directory);
  if (made < 0 && made != -EEXIST) {
    return WriteFailedError("mkdir", directory, -made);
  }
  return FlushDirectory(ops_, root_ + "/entries");
}

void CacheDirectory::RemoveTempsOlderThan(int64_t unix_ms) {
  std::vector<std::string> directories;
  ListEntryDirectories(&directories);
  for (const std::string& directory : directories) {
    std::vector<std::string> names;
    RetryInterrupted([&] { return ops_->List(directory, &names); });
    for (const std::string& name : names) {
      const std::string path = directory + "/" + name;
      struct stat status = {};
      if (name.compare(0, kTempPrefix.size(), kTempPrefix) == 0 &&
          ops_->Lstat(path, &status) == 0 && ModifiedUnixMs(status) < unix_ms) {
        ops_->Unlink(path);
      }
    }
  }
}

absl::Status CacheDirectory::Quarantine(const std::string& key) {
  const std::string path = EntryPath(key);
  struct stat status = {};
  const int found = ops_->Lstat(path, &status);
  if (found < 0) return WriteFailedError("lstat", path, -found);

  const bool keep =
      !S_ISREG(status.st_mode) || status.st_size <= kMaxQuarantinedBytes;
  const std::string target =
      keep ? QuarantinePath(ops_, root_ + "/quarantine", key) : "";
  if (!target.empty() && ops_->Rename(path, target) == 0) {
    return absl::OkStatus();
  }
  const int removed = RetryInterrupted([&] { return ops_->Unlink(path); });
  if (removed < 0) return WriteFailedError("unlink", path, -removed);
  return absl::OkStatus();
}

}  // namespace kiln
