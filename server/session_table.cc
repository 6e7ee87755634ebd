#include "server/session_table.h"

#include "server/errors.h"

namespace kiln {

std::shared_ptr<ClientSession> SessionTable::Open(DeviceTable& devices) {
  auto session = std::make_shared<ClientSession>(devices);
  MutexLock lock(mutex_);
  sessions_[session->id()] = session;
  return session;
}

void SessionTable::Close(const std::string& id) {
  std::shared_ptr<ClientSession> session;
  {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    session = found->second;
    sessions_.erase(found);
  }
  session->End();
}

absl::StatusOr<std::shared_ptr<ClientSession>> SessionTable::Find(
    const std::string& id) const {
  MutexLock lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return UnknownSession(id);
  return found->second;
}

std::shared_ptr<ClientSession> SessionTable::FindByToken(
    const std::string& token) const {
  MutexLock lock(mutex_);
  for (const auto& [id, session] : sessions_) {
    if (session->side_token() == token) return session;
  }
  return nullptr;
}

std::vector<std::shared_ptr<ClientSession>> SessionTable::All() const {
  std::vector<std::shared_ptr<ClientSession>> sessions;
  MutexLock lock(mutex_);
  for (const auto& [id, session] : sessions_) sessions.push_back(session);
  return sessions;
}

}  // namespace kiln
