#ifndef KILN_CACHE_DISK_CACHE_H_
#define KILN_CACHE_DISK_CACHE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/cache_directory.h"
#include "cache/entry_format.h"
#include "cache/file_ops.h"
#include "cache/lru_index.h"
#include "cache/mutex.h"

namespace kiln {

// Immutable entries on disk, one file each, by key (64 lower-case hexadecimal
// digits; any other key misses and is not stored). The payload is opaque. A
// cache only hits or misses: damage is a miss, quarantined and counted; a
// failed write loses the entry and nothing else. Entry format: entry_format.h;
// layout: cache_directory.h; both: docs/cache.md. Thread-safe.
//
// Several processes may open one directory: one writes (the holder of its lock
// file), the others only read. When the writer ends, the next one that has
// something to write takes over. Stores are one at a time, 0.6 ms each.
class DiskCache {
 public:
  struct Options {
    std::filesystem::path directory;  // created, mode 0700, if missing
    int64_t limit_bytes = int64_t{10} << 30;
    std::string writer = "kiln";  // stands in each entry, cut to 16 bytes

    // For tests; the system's if null.
    std::shared_ptr<FileOps> file_ops = nullptr;
    std::function<int64_t()> now_unix_ms = nullptr;
  };

  struct Record {
    std::string key_text;
    std::string payload;
  };

  struct EntryInfo {
    std::string key;
    std::string key_text;    // not verified; empty if unreadable
    int64_t size_bytes = 0;  // of the file
    int64_t last_used_unix_ms = 0;
  };

  struct Counters {
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t stores = 0;
    int64_t store_failures = 0;
    int64_t evictions = 0;
    int64_t damaged = 0;  // found so far; the writer quarantines them
    int64_t entries = 0;
    int64_t size_bytes = 0;
    int64_t limit_bytes = 0;
    bool degraded = false;  // the last write failed
    bool writable = false;  // this process holds the directory's lock
  };

  struct DamagedFile {
    std::string file;
    std::string reason;
  };

  // Indexes the directory. Errors: FAILED_PRECONDITION if it can neither be
  // created nor read, is a symbolic link, belongs to another user, or others
  // may write to it.
  static absl::StatusOr<std::unique_ptr<DiskCache>> Open(Options options);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // The whole, verified entry, or nothing. Marks it as used.
  std::optional<Record> Get(const std::string& key);

  // Stores an entry durably: when `stores` has gone up, it survives a power
  // cut. If it does not fit, the least recently used ones are evicted first,
  // down to 90% of the limit; the limit is never exceeded. An entry that exists
  // is left alone. Failures are counted, logged (at most once a minute) and
  // otherwise silent; the lack of the directory's lock is not counted.
  void Put(const std::string& key, std::string_view key_text,
           std::string_view payload);

  // Whether there is a file for `key`; does not open it.
  bool Contains(const std::string& key);

  // Looks at the directory again, so that the counters count the files that
  // there are: others may remove some, and copy some in. Costs a call for each
  // file. The cache does so by itself before it evicts, and where it misses a
  // file that it has stored.
  void Refresh();

  // Most recently used first.
  std::vector<EntryInfo> List();

  // Reads every entry; bad ones are quarantined and reported. `progress` is
  // called after each with (checked, total); returning false stops.
  std::vector<DamagedFile> Verify(
      const std::function<bool(int64_t checked, int64_t total)>& progress);

  struct Removed {
    int64_t entries = 0;
    int64_t size_bytes = 0;
  };
  // Evicts least recently used entries until at most `limit_bytes` remain.
  //
  // Errors: FAILED_PRECONDITION, with the id of the process that holds the
  // directory's lock if that is known: nothing is removed without it.
  absl::StatusOr<Removed> Gc(int64_t limit_bytes);
  // Removes the given entries; all of them if `keys` is empty. Errors: as Gc.
  absl::StatusOr<Removed> Purge(const std::vector<std::string>& keys);

  Counters counters() const;
  const std::filesystem::path& directory() const { return options_.directory; }

 private:
  DiskCache(Options options, CacheDirectory directory);

  absl::Status BecomeWriter() KILN_REQUIRES(write_mutex_);
  void PrepareToWrite() KILN_REQUIRES(write_mutex_);
  void Reindex() KILN_REQUIRES(write_mutex_);
  void NoticeMissing(const std::string& key);
  bool IsIndexed(const std::string& key) const;
  bool HasFile(const std::string& key) const;

  absl::StatusOr<CacheEntry> Read(const std::string& key);
  absl::StatusOr<CacheEntry> ReadAgain(const std::string& key);
  void SetAside(const std::string& key, const absl::Status& damage)
      KILN_REQUIRES(write_mutex_);
  void CountHit(const std::string& key, int64_t size_bytes);
  void Adopt(const std::string& key, int64_t size_bytes);

  absl::Status Store(const std::string& key, const std::string& bytes)
      KILN_REQUIRES(write_mutex_);
  absl::Status MakeRoom(int64_t size_bytes) KILN_REQUIRES(write_mutex_);
  Removed EvictDownTo(int64_t target_bytes) KILN_REQUIRES(write_mutex_);
  bool Remove(const std::string& key, Removed* removed)
      KILN_REQUIRES(write_mutex_);
  bool IsStored(const std::string& key) const;
  void ReportFailedStore(const absl::Status& status);
  void WarnNowAndThen(const absl::Status& status);
  int64_t size_bytes() const;

  const Options options_;
  FileOps* const ops_;
  const std::string temp_suffix_;

  // Held by whatever changes the directory. Taken before mutex_.
  Mutex write_mutex_ KILN_ACQUIRED_BEFORE(mutex_);
  CacheDirectory directory_;  // changed under write_mutex_; paths need no lock
  int64_t temps_ KILN_GUARDED_BY(write_mutex_) = 0;

  // Never held while the disk is touched.
  mutable Mutex mutex_;
  LruIndex index_ KILN_GUARDED_BY(mutex_);
  Counters counters_ KILN_GUARDED_BY(mutex_);
  int64_t next_warning_ms_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln

#endif  // KILN_CACHE_DISK_CACHE_H_
