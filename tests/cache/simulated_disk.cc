#include "tests/cache/simulated_disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string Lose(const std::string& data, const std::string& durable,
                 SimulatedDisk::DataLoss loss) {
  switch (loss) {
    case SimulatedDisk::DataLoss::kDropped:
      return durable;
    case SimulatedDisk::DataLoss::kHalf:
      return data.substr(0, std::max(durable.size(), data.size() / 2));
    case SimulatedDisk::DataLoss::kZeros:
      return durable + std::string(data.size() - durable.size(), '\0');
    case SimulatedDisk::DataLoss::kNone:
      return data;
  }
  return data;
}

}  // namespace

SimulatedDisk::SimulatedDisk() {
  auto root = std::make_shared<Inode>();
  root->directory = true;
  names_["/"] = root;
  durable_names_["/"] = root;
}

std::shared_ptr<SimulatedDisk> SimulatedDisk::AfterCrash(uint64_t kept_changes,
                                                         DataLoss loss) const {
  Names names = durable_names_;
  for (size_t i = 0; i < changes_.size(); ++i) {
    if ((kept_changes >> (i % 64) & 1) != 0) Apply(changes_[i], &names);
  }
  auto disk = std::make_shared<SimulatedDisk>();
  disk->now_unix_ms = now_unix_ms;
  // In order of path, so that a parent comes before its children.
  for (const auto& name : names) {
    if (name.first == "/" || !disk->Exists(ParentOf(name.first))) continue;
    auto inode = std::make_shared<Inode>(*name.second);
    inode->locked_by = -1;
    inode->data = Lose(inode->data, inode->durable, loss);
    inode->durable = inode->data;
    disk->names_[name.first] = inode;
  }
  disk->durable_names_ = disk->names_;
  return disk;
}

std::string SimulatedDisk::Fingerprint() const {
  std::string text;
  for (const auto& name : names_) {
    // Two runs name their temporary files differently.
    if (name.first.find(".tmp-") == std::string::npos) text += name.first;
    text += '\0' + name.second->data + '\0';
  }
  return text;
}

void SimulatedDisk::Apply(const Change& change, Names* names) {
  if (!change.removed.empty()) names->erase(change.removed);
  if (!change.added.empty()) (*names)[change.added] = change.inode;
}

std::shared_ptr<SimulatedDisk::Inode> SimulatedDisk::Find(
    const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? nullptr : found->second;
}

std::shared_ptr<SimulatedDisk::Inode> SimulatedDisk::Create(
    const std::string& path, bool directory) {
  auto inode = std::make_shared<Inode>();
  inode->directory = directory;
  inode->modified_unix_ms = now_unix_ms;
  changes_.push_back({"", path, inode});
  Apply(changes_.back(), &names_);
  return inode;
}

int SimulatedDisk::Step(int result) {
  if (after_step) after_step();
  return result;
}

int SimulatedDisk::Open(const std::string& path, int flags, mode_t) {
  std::shared_ptr<Inode> inode = Find(path);
  if (inode != nullptr && (flags & O_EXCL) != 0) return -EEXIST;
  if (inode == nullptr && (flags & O_CREAT) == 0) return -ENOENT;
  if (inode == nullptr && Find(ParentOf(path)) == nullptr) return -ENOENT;
  const bool creates = inode == nullptr;
  if (creates) inode = Create(path, false);
  if ((flags & O_DIRECTORY) != 0 && !inode->directory) return -ENOTDIR;
  open_[next_fd_] = {path, inode};
  const int fd = next_fd_++;
  return creates ? Step(fd) : fd;
}

void SimulatedDisk::Close(int fd) {
  const auto file = open_.find(fd);
  if (file->second.inode->locked_by == fd) file->second.inode->locked_by = -1;
  open_.erase(file);
}

ssize_t SimulatedDisk::Pread(int fd, char* buffer, size_t size, off_t offset) {
  const std::string& data = open_.at(fd).inode->data;
  const auto start = std::min(static_cast<size_t>(offset), data.size());
  const size_t count = std::min(size, data.size() - start);
  std::memcpy(buffer, data.data() + start, count);
  return static_cast<ssize_t>(count);
}

// Writes in two halves, as a file system may.
ssize_t SimulatedDisk::Write(int fd, const char* data, size_t size) {
  const size_t count = (size + 1) / 2;
  open_.at(fd).inode->data.append(data, count);
  Step(0);
  return static_cast<ssize_t>(count);
}

int SimulatedDisk::Fdatasync(int fd) {
  if (ignore_fdatasync) return Step(0);
  Inode& inode = *open_.at(fd).inode;
  inode.durable = inode.data;
  return Step(0);
}

int SimulatedDisk::Fsync(int fd) {
  if (ignore_fsync) return Step(0);
  const std::string directory = open_.at(fd).path;
  std::vector<Change> rest;
  for (const Change& change : changes_) {
    const std::string& name =
        change.added.empty() ? change.removed : change.added;
    if (ParentOf(name) == directory) {
      Apply(change, &durable_names_);
    } else {
      rest.push_back(change);
    }
  }
  changes_ = rest;
  return Step(0);
}

int SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  const std::shared_ptr<Inode> inode = Find(from);
  if (inode == nullptr || Find(ParentOf(to)) == nullptr) return -ENOENT;
  if (ParentOf(from) == ParentOf(to)) {
    changes_.push_back({from, to, inode});
    Apply(changes_.back(), &names_);
    return Step(0);
  }
  for (const Change& change :
       {Change{"", to, inode}, Change{from, "", inode}}) {
    changes_.push_back(change);
    Apply(change, &names_);
  }
  return Step(0);
}

int SimulatedDisk::Unlink(const std::string& path) {
  const std::shared_ptr<Inode> inode = Find(path);
  if (inode == nullptr) return -ENOENT;
  if (inode->directory) return -EISDIR;
  changes_.push_back({path, "", inode});
  Apply(changes_.back(), &names_);
  return Step(0);
}

int SimulatedDisk::Mkdir(const std::string& path, mode_t) {
  if (Find(path) != nullptr) return -EEXIST;
  if (Find(ParentOf(path)) == nullptr) return -ENOENT;
  Create(path, true);
  return Step(0);
}

int SimulatedDisk::Lstat(const std::string& path, struct stat* status) {
  const std::shared_ptr<Inode> inode = Find(path);
  if (inode == nullptr) return -ENOENT;
  *status = {};
  status->st_mode = inode->directory ? S_IFDIR | 0700 : S_IFREG | 0600;
  status->st_uid = geteuid();
  status->st_size = static_cast<off_t>(inode->data.size());
  status->st_mtim.tv_sec = inode->modified_unix_ms / 1000;
  status->st_mtim.tv_nsec = inode->modified_unix_ms % 1000 * 1'000'000;
  return 0;
}

int SimulatedDisk::Fstat(int fd, struct stat* status) {
  return Lstat(open_.at(fd).path, status);
}

int SimulatedDisk::SetModified(const std::string& path, int64_t unix_ms) {
  const std::shared_ptr<Inode> inode = Find(path);
  if (inode == nullptr) return -ENOENT;
  inode->modified_unix_ms = unix_ms;
  return 0;
}

int SimulatedDisk::TryLock(int fd) {
  Inode& inode = *open_.at(fd).inode;
  if (inode.locked_by != -1 && inode.locked_by != fd) return -EWOULDBLOCK;
  inode.locked_by = fd;
  return 0;
}

int SimulatedDisk::List(const std::string& path,
                        std::vector<std::string>* names) {
  names->clear();
  if (Find(path) == nullptr) return -ENOENT;
  for (const auto& name : names_) {
    if (name.first != "/" && ParentOf(name.first) == path) {
      names->push_back(name.first.substr(name.first.rfind('/') + 1));
    }
  }
  return 0;
}

}  // namespace kiln
