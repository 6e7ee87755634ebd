#ifndef KILN_SERVER_SESSION_TABLE_H_
#define KILN_SERVER_SESSION_TABLE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/mutex.h"
#include "server/client_session.h"

namespace kiln {

// The open sessions. Thread-safe.
class SessionTable {
 public:
  std::shared_ptr<ClientSession> Open(DeviceTable& devices);
  // Removes the session and ends it. Unknown ids are ignored.
  void Close(const std::string& id);

  // Errors: FAILED_PRECONDITION: not open.
  absl::StatusOr<std::shared_ptr<ClientSession>> Find(
      const std::string& id) const;
  // By side token; null: no such session.
  std::shared_ptr<ClientSession> FindByToken(const std::string& token) const;

  std::vector<std::shared_ptr<ClientSession>> All() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<ClientSession>> sessions_
      KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln

#endif  // KILN_SERVER_SESSION_TABLE_H_
