#ifndef KILN_SERVER_CALL_H_
#define KILN_SERVER_CALL_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/activity.h"
#include "server/errors.h"
#include "server/listen_socket.h"

namespace kiln {

// One call under way: its id, its log line, its place in Activity.
class Call {
 public:
  // `method` is a literal: "Compile".
  Call(Activity& activity, grpc::CallbackServerContext* context,
       const Peer& peer, const char* method);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const std::string& id() const { return id_; }
  // UNAVAILABLE while the daemon drains, else ok.
  absl::Status admitted() const;
  int64_t elapsed_us() const;

  // Logs the call's line, attaches the error's detail to the trailer and
  // returns what gRPC must be told. Once per call.
  grpc::Status Finish(const absl::Status& status);

 private:
  Activity& activity_;
  grpc::CallbackServerContext* const context_;
  const Peer peer_;
  const char* const method_;
  const std::string id_;
  const std::chrono::steady_clock::time_point start_;
  bool admitted_;
};

// Answers a unary call with what `body(Call&)` returns.
template <typename Body>
grpc::ServerUnaryReactor* AnswerNow(Activity& activity,
                                    grpc::CallbackServerContext* context,
                                    const Peer& peer, const char* method,
                                    Body body) {
  Call call(activity, context, peer, method);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(call.Finish(StatusOf([&] { return body(call); })));
  return reactor;
}

// A unary call that is answered later, from any thread. Lives until gRPC is
// done with it and nobody holds it.
class PendingCall : public grpc::ServerUnaryReactor {
 public:
  static std::shared_ptr<PendingCall> Start(
      Activity& activity, grpc::CallbackServerContext* context,
      const Peer& peer, const char* method);

  // True for the first caller only, who may then write the response and must
  // call Finish. gRPC's request and response are gone once that was called.
  bool Claim() { return !claimed_.exchange(true); }
  void Finish(const absl::Status& status);

  // Called when the client gives up, unless the call was claimed before; the
  // call is then answered CANCELLED by itself.
  void OnClientGone(std::function<void()> gone);

  Call& call() { return call_; }

 private:
  PendingCall(Activity& activity, grpc::CallbackServerContext* context,
              const Peer& peer, const char* method);
  void OnCancel() override;
  void OnDone() override;

  Call call_;
  std::atomic<bool> claimed_{false};
  // Set once, before or after OnCancel: whoever comes second runs it.
  std::function<void()> gone_;
  std::atomic<int> gone_steps_{0};
  std::shared_ptr<PendingCall> self_;  // until OnDone
};

}  // namespace kiln

#endif  // KILN_SERVER_CALL_H_
