#include "server/executor_artifacts.h"

#include <utility>

namespace kiln {

void ExecutorArtifacts::Put(const std::string& key, Artifact artifact,
                            int64_t size_bytes) {
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) Drop(found->second);
  held_.push_front({key, std::move(artifact), size_bytes});
  by_key_[key] = held_.begin();
  size_bytes_ += size_bytes;
  while (size_bytes_ > limit_bytes_ && held_.size() > 1) {
    Drop(std::prev(held_.end()));
  }
}

const Artifact* ExecutorArtifacts::Get(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  held_.splice(held_.begin(), held_, found->second);
  return &found->second->artifact;
}

void ExecutorArtifacts::Drop(std::list<Held>::iterator held) {
  size_bytes_ -= held->size_bytes;
  by_key_.erase(held->key);
  held_.erase(held);
}

}  // namespace kiln
