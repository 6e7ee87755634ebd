#include "cache/lru_index.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace kiln {
namespace {

// A hit may cost a write of an inode. Hourly is exact enough to evict by after
// a restart, and makes the cost vanish.
constexpr int64_t kSaveEveryMs = 3600 * 1000;

}  // namespace

void LruIndex::Rebuild(std::vector<Entry> entries) {
  std::unordered_map<std::string, int64_t> places;  // from the least recent
  for (auto known = order_.rbegin(); known != order_.rend(); ++known) {
    places[known->key] = static_cast<int64_t>(places.size()) + 1;
  }
  for (Entry& entry : entries) {
    if (const Entry* const known = Find(entry.key)) {
      entry.last_used_ms = known->last_used_ms;
    }
  }
  order_.clear();
  by_key_.clear();
  size_bytes_ = 0;
  const auto use = [&](const Entry& entry) {
    const auto place = places.find(entry.key);
    return std::tuple(entry.last_used_ms,
                      place == places.end() ? 0 : place->second,
                      std::string_view(entry.key));
  };
  std::sort(entries.begin(), entries.end(),
            [&](const Entry& a, const Entry& b) { return use(a) < use(b); });
  for (Entry& entry : entries) Insert(std::move(entry));
}

void LruIndex::Insert(Entry entry) {
  Erase(entry.key);
  size_bytes_ += entry.size_bytes;
  order_.push_front(std::move(entry));
  by_key_[order_.front().key] = order_.begin();
}

bool LruIndex::Touch(const std::string& key, int64_t now_ms) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return false;
  order_.splice(order_.begin(), order_, found->second);
  Entry& entry = order_.front();
  entry.last_used_ms = now_ms;
  if (now_ms - entry.saved_ms < kSaveEveryMs) return false;
  entry.saved_ms = now_ms;
  return true;
}

void LruIndex::Erase(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  size_bytes_ -= found->second->size_bytes;
  order_.erase(found->second);
  by_key_.erase(found);
}

const LruIndex::Entry* LruIndex::Find(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : &*found->second;
}

std::vector<std::string> LruIndex::Victims(int64_t target_bytes) const {
  std::vector<std::string> victims;
  int64_t left = size_bytes_;
  for (auto entry = order_.rbegin();
       entry != order_.rend() && left > target_bytes; ++entry) {
    victims.push_back(entry->key);
    left -= entry->size_bytes;
  }
  return victims;
}

std::vector<LruIndex::Entry> LruIndex::MostRecentFirst() const {
  return {order_.begin(), order_.end()};
}

}  // namespace kiln
