#ifndef KILN_CACHE_LRU_INDEX_H_
#define KILN_CACHE_LRU_INDEX_H_

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {

// Which entries there are, how large, and in what order they were used. Plain
// memory: touches no disk. Not thread-safe.
class LruIndex {
 public:
  struct Entry {
    std::string key;
    int64_t size_bytes = 0;
    int64_t last_used_ms = 0;  // unix time
    int64_t saved_ms = 0;      // the last use that the disk knows of
  };

  // Replaces everything, but keeps the last use and the order of those that are
  // there already. Else the order of use is that of last_used_ms, then of key.
  void Rebuild(std::vector<Entry> entries);

  // Adds or replaces an entry, as the most recently used one.
  void Insert(Entry entry);

  // Marks an entry as used now. Returns whether the disk should be told,
  // because it knows of no use within the last hour. False for unknown keys.
  bool Touch(const std::string& key, int64_t now_ms);

  void Erase(const std::string& key);

  // Null if there is none. Valid until the entry changes.
  const Entry* Find(const std::string& key) const;

  // Least recently used keys, in this order, whose removal leaves at most
  // `target_bytes`. Removes nothing.
  std::vector<std::string> Victims(int64_t target_bytes) const;

  std::vector<Entry> MostRecentFirst() const;

  int64_t size_bytes() const { return size_bytes_; }
  int64_t entries() const { return static_cast<int64_t>(order_.size()); }

 private:
  std::list<Entry> order_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  int64_t size_bytes_ = 0;
};

}  // namespace kiln

#endif  // KILN_CACHE_LRU_INDEX_H_
