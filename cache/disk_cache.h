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

namespace kiln {

// Immutable entries on disk, one file each, by key (64 hexadecimal digits).
// The payload is opaque. A cache only hits or misses: damage is a miss,
// quarantined and counted; a failed write loses the entry and nothing else.
// Entry format: entry_format.h. Thread-safe. Several processes may open one
// directory: one writes (the holder of its lock file), the others read.
class DiskCache {
 public:
  struct Options {
    std::filesystem::path directory;  // created, mode 0700, if missing
    int64_t limit_bytes = int64_t{10} << 30;
  };

  struct Record {
    std::string key_text;
    std::string payload;
  };

  struct EntryInfo {
    std::string key;
    std::string key_text;
    int64_t size_bytes = 0;
    int64_t last_used_unix_ms = 0;
  };

  struct Counters {
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t stores = 0;
    int64_t store_failures = 0;
    int64_t evictions = 0;
    int64_t damaged = 0;  // found so far; each was quarantined
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
  // created nor read, is a symbolic link or belongs to another user.
  static absl::StatusOr<std::unique_ptr<DiskCache>> Open(Options options);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // The whole, verified entry, or nothing. Marks it as used.
  std::optional<Record> Get(const std::string& key);

  // Stores an entry durably (file and directory are synchronised), then evicts
  // the least recently used ones while the limit is exceeded. An entry that
  // exists is left alone. Failures are counted, logged and otherwise silent.
  void Put(const std::string& key, std::string_view key_text,
           std::string_view payload);

  bool Contains(const std::string& key) const;

  // Most recently used first.
  std::vector<EntryInfo> List() const;

  // Reads every entry; bad ones are quarantined and reported. `progress` is
  // called after each with (checked, total); returning false stops.
  std::vector<DamagedFile> Verify(
      const std::function<bool(int64_t checked, int64_t total)>& progress);

  struct Removed {
    int64_t entries = 0;
    int64_t size_bytes = 0;
  };
  // Evicts least recently used entries until at most `limit_bytes` remain.
  Removed Gc(int64_t limit_bytes);
  // Removes the given entries; all of them if `keys` is empty.
  Removed Purge(const std::vector<std::string>& keys);

  Counters counters() const;
  const std::filesystem::path& directory() const;

 private:
  class Index;
  explicit DiskCache(Options options);
  Options options_;
  std::unique_ptr<Index> index_;
};

}  // namespace kiln

#endif  // KILN_CACHE_DISK_CACHE_H_
