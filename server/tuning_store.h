#ifndef KILN_SERVER_TUNING_STORE_H_
#define KILN_SERVER_TUNING_STORE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cache/file_ops.h"
#include "cache/mutex.h"
#include "kiln/v1/service.pb.h"

namespace kiln {

// The tunings of plans, each under the plan's key for the variant "auto":
// kept in memory, and in `folder` as <key>.json, the JSON form of
// kiln.v1.Tuning. A file that cannot be read as such is logged and counts as
// none. Files that others put there are seen at the next start. Thread-safe.
class TuningStore {
 public:
  using Shared = std::shared_ptr<const v1::Tuning>;

  // Reads what is in `folder`, which need not exist.
  TuningStore(std::string folder, std::shared_ptr<FileOps> ops);

  // Null: none.
  Shared Find(const std::string& key) const;

  // Durable when this returns OK. Errors: UNAVAILABLE, and then nothing has
  // changed.
  absl::Status Put(const std::string& key, const v1::Tuning& tuning);

 private:
  absl::Status Write(const std::string& key, const v1::Tuning& tuning)
      KILN_REQUIRES(write_mutex_);

  const std::string folder_;
  const std::shared_ptr<FileOps> ops_;
  Mutex write_mutex_ KILN_ACQUIRED_BEFORE(mutex_);  // held while writing
  mutable Mutex mutex_;  // never held while the disk is touched
  std::map<std::string, Shared> tunings_ KILN_GUARDED_BY(mutex_);
};

// INVALID_ARGUMENT, naming the field, if a tuning lacks its device, its
// measurements or their variants, or if its winner was not measured.
absl::Status CheckTuning(const v1::Tuning& tuning);

}  // namespace kiln

#endif  // KILN_SERVER_TUNING_STORE_H_
