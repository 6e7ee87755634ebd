#ifndef KILN_SERVER_EXECUTOR_ARTIFACTS_H_
#define KILN_SERVER_EXECUTOR_ARTIFACTS_H_

#include <cstdint>
#include <list>
#include <map>
#include <string>

#include "jit/artifact/artifact.h"

namespace kiln {

// The artifacts that an executor holds, least recently used dropped first.
// Not thread-safe.
class ExecutorArtifacts {
 public:
  // Holds `limit_bytes` and always the newest artifact, however large.
  explicit ExecutorArtifacts(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Replaces what is held under `key`. `size_bytes` is what it counts for.
  void Put(const std::string& key, Artifact artifact, int64_t size_bytes);

  // Null if not held; else valid until the next Put.
  const Artifact* Get(const std::string& key);

 private:
  struct Held {
    std::string key;
    Artifact artifact;
    int64_t size_bytes;
  };

  void Drop(std::list<Held>::iterator held);

  const int64_t limit_bytes_;
  int64_t size_bytes_ = 0;
  std::list<Held> held_;  // most recently used first
  std::map<std::string, std::list<Held>::iterator> by_key_;
};

}  // namespace kiln

#endif  // KILN_SERVER_EXECUTOR_ARTIFACTS_H_
