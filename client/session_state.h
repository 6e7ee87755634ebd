#ifndef KILN_CLIENT_SESSION_STATE_H_
#define KILN_CLIENT_SESSION_STATE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client/connection.h"
#include "client/cuda_context.h"
#include "client/session.h"

namespace kiln::client {

// The open Attach stream behind a Session and its buffers, and the thread that
// reads it. Thread-safe. Not part of the public interface.
class SessionState {
 public:
  using OnEvent = std::function<void(const SessionEvent&)>;

  // Errors: those of Attach; DEADLINE_EXCEEDED: no first event.
  static absl::StatusOr<std::shared_ptr<SessionState>> Open(
      std::shared_ptr<const Connection> connection, OnEvent on_event);
  // Ends the session, and with it every registration.
  ~SessionState();
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  const Connection& connection() const { return *connection_; }
  const std::string& id() const { return opened_.session(); }
  const std::string& side_socket() const { return opened_.side_socket(); }
  const std::string& side_token() const { return opened_.side_token(); }
  uint64_t NextTag() { return ++last_tag_; }
  // The GPU that the daemon calls `device`, opened here by the first call.
  //
  // Errors: INVALID_ARGUMENT: the daemon has no such GPU; those of
  // CudaContext::Open.
  absl::StatusOr<std::shared_ptr<const CudaContext>> Cuda(
      const std::string& device);

 private:
  SessionState(std::shared_ptr<const Connection> connection, OnEvent on_event);
  void Read();
  void Deliver(const v1::SessionEvent& event);
  absl::Status WaitUntilOpened();

  const std::shared_ptr<const Connection> connection_;
  const OnEvent on_event_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::SessionEvent>> stream_;
  std::atomic<uint64_t> last_tag_{0};

  std::mutex cuda_mutex_;
  // By name. Guarded by cuda_mutex_.
  std::map<std::string, std::shared_ptr<const CudaContext>> cuda_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_opened_ = false;           // guarded by mutex_
  bool ended_ = false;               // guarded by mutex_
  absl::Status end_;                 // guarded by mutex_
  v1::SessionEvent::Opened opened_;  // constant once is_opened_

  std::thread reader_;
};

}  // namespace kiln::client

#endif  // KILN_CLIENT_SESSION_STATE_H_
