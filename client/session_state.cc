#include "client/session_state.h"

#include <fmt/format.h>

#include <utility>

#include "client/version.h"
#include "proto/protocol.h"

namespace kiln::client {
namespace {

SessionEvent FromProto(const v1::SessionEvent& message) {
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
  return absl::DeadlineExceededError("The daemon opens no session in time");
}

void SessionState::Read() {
  v1::SessionEvent event;
  while (stream_->Read(&event)) Deliver(event);
  const absl::Status end = connection_->Finish(stream_->Finish(), context_);
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
    on_event_(FromProto(event));
  }
}

}  // namespace kiln::client
