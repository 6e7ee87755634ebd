#include "client/session_state.h"

#include <fmt/format.h>

#include <utility>

#include "client/version.h"
#include "jit/plan/errors.h"
#include "proto/protocol.h"

namespace kiln::client {
namespace {

SessionEvent EventFromProto(const v1::SessionEvent& message) {
  SessionEvent event;
  if (message.has_executor_restarted()) {
    event.kind = SessionEvent::Kind::kExecutorRestarted;
    event.device = message.executor_restarted().device();
    event.reason = message.executor_restarted().reason();
  } else {
    event.kind = SessionEvent::Kind::kDraining;
    event.grace_ms = message.draining().grace_ms();
  }
  return event;
}

absl::StatusOr<std::string> UuidOf(const Connection& connection,
                                   const std::string& device) {
  const absl::StatusOr<v1::GetServerInfoResponse> info =
      connection.Call(connection.compiler(), &v1::Compiler::Stub::GetServerInfo,
                      v1::GetServerInfoRequest());
  if (!info.ok()) return info.status();
  std::string known;
  for (const v1::DeviceInfo& candidate : info->devices()) {
    if (candidate.uuid().empty()) continue;
    if (candidate.device() == device) return candidate.uuid();
    known += (known.empty() ? "" : ", ") + candidate.device();
  }
  return InvalidField("device", "the daemon has no such GPU", device,
                      known.empty() ? "none" : known);
}

}  // namespace

SessionState::SessionState(std::shared_ptr<const Connection> connection,
                           OnEvent on_event)
    : connection_(std::move(connection)), on_event_(std::move(on_event)) {
  v1::AttachRequest request;
  request.set_protocol(kProtocolVersion);
  request.set_client(fmt::format("libkiln {}", kClientVersion));
  stream_ = connection_->buffers().Attach(&context_, request);
  reader_ = std::thread([this] { Read(); });
}

SessionState::~SessionState() {
  context_.TryCancel();
  reader_.join();
}

absl::StatusOr<std::shared_ptr<SessionState>> SessionState::Open(
    std::shared_ptr<const Connection> connection, OnEvent on_event) {
  std::shared_ptr<SessionState> state(
      new SessionState(std::move(connection), std::move(on_event)));
  const absl::Status opened = state->WaitUntilOpened();
  if (!opened.ok()) return opened;
  return state;
}

absl::Status SessionState::WaitUntilOpened() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, connection_->options().start_timeout,
                    [this] { return is_opened_ || ended_; });
  if (is_opened_) return absl::OkStatus();
  if (ended_) return end_;
  return absl::DeadlineExceededError(fmt::format(
      "kilnd on {} does not open a session before the call's deadline ({} ms)",
      connection_->options().socket,
      connection_->options().start_timeout.count()));
}

absl::StatusOr<std::shared_ptr<const CudaContext>> SessionState::Cuda(
    const std::string& device) {
  const std::lock_guard<std::mutex> lock(cuda_mutex_);
  std::shared_ptr<const CudaContext>& opened = cuda_[device];
  if (opened != nullptr) return opened;
  const absl::StatusOr<std::string> uuid = UuidOf(*connection_, device);
  if (!uuid.ok()) return uuid.status();
  absl::StatusOr<std::shared_ptr<const CudaContext>> context =
      CudaContext::Open(*uuid, connection_->options().cuda_driver);
  if (context.ok()) opened = *context;
  return context;
}

void SessionState::Read() {
  v1::SessionEvent event;
  while (stream_->Read(&event)) Deliver(event);
  const absl::Status end =
      connection_->Finish(stream_->Finish(), context_, "AttachRequest");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    end_ = end.ok() ? absl::UnavailableError("The session has ended") : end;
    changed_.notify_all();
  }
  if (!on_event_) return;
  SessionEvent ended;
  ended.kind = SessionEvent::Kind::kEnded;
  ended.reason = std::string(end.message());
  on_event_(ended);
}

void SessionState::Deliver(const v1::SessionEvent& event) {
  if (event.has_opened()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    opened_ = event.opened();
    is_opened_ = true;
    changed_.notify_all();
  } else if (on_event_) {
    on_event_(EventFromProto(event));
  }
}

}  // namespace kiln::client
