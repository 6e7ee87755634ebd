#include "server/call.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>

#include "proto/protocol.h"
#include "server/logging.h"
#include "server/random_id.h"
#include "server/request_prefix.h"
#include "server/status_converter.h"

namespace kiln {
namespace {

constexpr size_t kDefaultDetailBytes = 4096;
constexpr size_t kMaxDetailBytes = 256 << 10;

size_t DetailLimit(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kDetailLimitMetadata);
  if (found == metadata.end()) return kDefaultDetailBytes;
  size_t limit = kDefaultDetailBytes;
  std::from_chars(found->second.begin(), found->second.end(), limit);
  return std::min(limit, kMaxDetailBytes);
}

spdlog::level::level_enum LevelOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kNotFound:
      return spdlog::level::debug;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnknown:
      return spdlog::level::err;
    default:
      return spdlog::level::warn;
  }
}

}  // namespace

Call::Call(Activity& activity, grpc::CallbackServerContext* context,
           const Peer& peer, const char* method)
    : activity_(activity),
      context_(context),
      peer_(peer),
      method_(method),
      id_(ToHex(RandomBytes(8))),
      start_(std::chrono::steady_clock::now()),
      admitted_(activity.Begin()) {}

Call::~Call() { activity_.End(); }

absl::Status Call::admitted() const {
  if (admitted_) return absl::OkStatus();
  return absl::UnavailableError("The daemon is stopping; retry");
}

int64_t Call::elapsed_us() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now() - start_)
      .count();
}

grpc::Status Call::Finish(const absl::Status& status) {
  grpc::Status answer = ToGrpc(status);
  const auto level = LevelOf(status);
  if (spdlog::should_log(level)) {
    spdlog::log(level, "{}{} {} {} us pid={}{}{}", RequestPrefix(id_), method_,
                absl::StatusCodeToString(status.code()), elapsed_us(),
                peer_.pid, status.ok() ? "" : ": ",
                Printable(answer.error_message()));
  }
  if (!status.ok()) {
    context_->AddTrailingMetadata(
        kErrorDetailMetadata,
        DetailToProto(status, id_, DetailLimit(*context_)).SerializeAsString());
  }
  return answer;
}

PendingCall::PendingCall(Activity& activity,
                         grpc::CallbackServerContext* context, const Peer& peer,
                         const char* method)
    : call_(activity, context, peer, method) {}

std::shared_ptr<PendingCall> PendingCall::Start(
    Activity& activity, grpc::CallbackServerContext* context, const Peer& peer,
    const char* method) {
  std::shared_ptr<PendingCall> call(
      new PendingCall(activity, context, peer, method));
  call->self_ = call;
  return call;
}

void PendingCall::Finish(const absl::Status& status) {
  grpc::ServerUnaryReactor::Finish(call_.Finish(status));
}

void PendingCall::OnClientGone(std::function<void()> gone) {
  gone_ = std::move(gone);
  if (++gone_steps_ == 2) gone_();
}

void PendingCall::OnCancel() {
  if (!Claim()) return;
  if (++gone_steps_ == 2) gone_();
  Finish(absl::CancelledError("The client gave up"));
}

void PendingCall::OnDone() {
  const std::shared_ptr<PendingCall> last = std::move(self_);
}

}  // namespace kiln
