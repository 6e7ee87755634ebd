#ifndef KILN_SERVER_REQUEST_RECORDER_H_
#define KILN_SERVER_REQUEST_RECORDER_H_

#include <memory>
#include <string>
#include <unordered_set>

#include "absl/status/statusor.h"
#include "cache/mutex.h"
#include "proto/file_descriptor.h"
#include "server/keyed_request.h"

namespace kiln {

// Appends each distinct request to a manifest that `kiln prewarm` reads: one
// JSON object per line, {"plan": TEXT, "targets": [TARGET], "grade": GRADE},
// and "variant": TEXT if the client named one. Distinct: by key and named
// variant, for the life of the process. Thread-safe.
class RequestRecorder {
 public:
  // Errors: FAILED_PRECONDITION if the file cannot be opened.
  static absl::StatusOr<std::unique_ptr<RequestRecorder>> Open(
      const std::string& path);

  // `variant`: as the client named it; empty if it left the choice to the
  // daemon, whose tunings other hosts may not have.
  void Record(const KeyedRequest& keyed, const std::string& variant,
              const std::string& request_id);

 private:
  explicit RequestRecorder(FileDescriptor file);
  FileDescriptor file_;
  Mutex mutex_;
  std::unordered_set<std::string> seen_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln

#endif  // KILN_SERVER_REQUEST_RECORDER_H_
