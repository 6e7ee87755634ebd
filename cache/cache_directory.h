#ifndef KILN_CACHE_CACHE_DIRECTORY_H_
#define KILN_CACHE_CACHE_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/file_ops.h"

namespace kiln {

// The layout of a cache directory, and who may write to it:
//
//   <root>/lock                   flock'ed by the one process that writes,
//   whose
//                                 id stands in it
//   <root>/entries/ab/<key>.kiln  one file per entry; ab starts the key
//   <root>/entries/ab/.tmp-*      being written
//   <root>/quarantine/<key>.<n>   damaged entries, at most 64
//
// Directories have mode 0700, files 0600. Owns the lock. Not thread-safe,
// except for paths.
class CacheDirectory {
 public:
  struct FoundEntry {
    std::string key;
    int64_t size_bytes = 0;  // 0 unless a regular file
    int64_t modified_unix_ms = 0;
  };

  struct Listing {
    std::vector<FoundEntry> entries;
    bool is_whole = true;  // nothing that exists was unreadable
  };

  // Creates what is missing and tries to become the writer. A root that can
  // be read but not written to is fine: it is never the writer then. Warns on
  // NFS, where the lock may be local to the host.
  //
  // Errors: FAILED_PRECONDITION if the root can neither be created nor read,
  // is a symbolic link, belongs to another user, or others may write to it.
  static absl::StatusOr<CacheDirectory> Open(FileOps* ops, std::string root);

  // Takes the lock if no process holds it. OK if this one does, now.
  //
  // Errors: FAILED_PRECONDITION if another process does, with its id if that is
  // known (lock_holder.h), or if the lock cannot be taken.
  absl::Status TryBecomeWriter();
  bool is_writer() const { return is_writer_; }

  const std::string& root() const { return root_; }
  std::string EntryPath(const std::string& key) const;
  std::string TempPath(const std::string& key, const std::string& suffix) const;

  // The files whose names are those of entries, in no order; neither opened
  // nor verified. A directory that cannot be listed counts as empty.
  Listing FindEntries() const;

  // Creates the directory of `key`'s entry, durably. Errors: UNAVAILABLE.
  absl::Status MakeEntryDirectory(const std::string& key);

  // Removes temporary files last written to before `unix_ms`.
  void RemoveTempsOlderThan(int64_t unix_ms);

  // Moves an entry's file (or whatever stands in its place) to quarantine;
  // deletes it if it is larger than a quarantined file may be. At most 64
  // stay; the oldest goes. Errors: UNAVAILABLE: it is still in its place.
  absl::Status Quarantine(const std::string& key);

 private:
  CacheDirectory(FileOps* ops, std::string root);
  void CreateLayout();
  void WriteHolder();
  std::string DescribeHolder() const;
  int ListEntryDirectories(std::vector<std::string>* paths) const;

  FileOps* ops_;
  std::string root_;
  FileHandle lock_;
  bool is_writer_ = false;
};

}  // namespace kiln

#endif  // KILN_CACHE_CACHE_DIRECTORY_H_
