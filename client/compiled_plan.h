#ifndef KILN_CLIENT_COMPILED_PLAN_H_
#define KILN_CLIENT_COMPILED_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/plan/plan.h"

namespace kiln {

// Where an artifact came from.
enum class ArtifactSource { kMemory, kDisk, kCompiled };

// "memory", "disk", "compiled".
std::string_view ArtifactSourceName(ArtifactSource source);

// Wall time of a compile request's phases on the server, in microseconds; 0
// for a phase that was not entered.
struct CompilePhases {
  int64_t key_us = 0;       // check, canonicalise, hash
  int64_t lookup_us = 0;    // in memory and on disk
  int64_t queue_us = 0;     // waiting for a compile worker
  int64_t generate_us = 0;  // scheduling and writing the sources
  int64_t nvrtc_us = 0;     // inside NVRTC
  int64_t store_us = 0;     // writing to the cache
  int64_t total_us = 0;
};

// A plan whose artifact is in the daemon's cache. A value; it stays usable as
// long as the cache keeps the entry.
struct CompiledPlan {
  Plan plan;           // as the client gave it; names resolve against it
  std::string key;     // 64 hexadecimal digits
  std::string target;  // resolved: "sm_90a/132", "cpu"
  ArtifactSource source = ArtifactSource::kCompiled;
  // Slot of the artifact for each input of `plan`, -1 where the result does
  // not depend on it, and for each output.
  std::vector<int> slot_of_input;
  std::vector<int> slot_of_output;
  // Serialised kiln.v1.Artifact; empty unless CompileOptions asked for it.
  std::string artifact;
  CompilePhases timing;
};

}  // namespace kiln

#endif  // KILN_CLIENT_COMPILED_PLAN_H_
