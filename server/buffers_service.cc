#include "server/buffers_service.h"

#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

#include "proto/protocol.h"
#include "server/call.h"
#include "server/errors.h"
#include "server/listen_socket.h"
#include "server/logging.h"
#include "server/queued_writer.h"
#include "server/register_call.h"
#include "server/request_prefix.h"

namespace kiln {
namespace {

using EventWriter = QueuedWriter<v1::SessionEvent>;

// The session's view of its stream.
class EventStream : public ClientSession::Stream {
 public:
  explicit EventStream(std::shared_ptr<EventWriter> writer)
      : writer_(std::move(writer)) {}
  void Push(const v1::SessionEvent& event) override { writer_->Push(event); }
  void Close(const absl::Status& status) override { writer_->Close(status); }

 private:
  const std::shared_ptr<EventWriter> writer_;
};

void OpenSession(Front& front, const v1::AttachRequest& request,
                 const Peer& peer, const std::shared_ptr<EventWriter>& writer) {
  const std::shared_ptr<ClientSession> session =
      front.sessions->Open(*front.devices);
  spdlog::info("{}Session opened for pid {} ({})",
               RequestPrefix(writer->call().id()), peer.pid,
               Printable(request.client().substr(0, 64)));
  // The writer keeps the stream, the session only looks at it.
  auto stream = std::make_shared<EventStream>(writer);
  session->SetStream(stream);
  writer->OnEnd(
      [&front, stream = std::move(stream), id = session->id()]() mutable {
        stream.reset();
        front.sessions->Close(id);
      });
  v1::SessionEvent event;
  event.mutable_opened()->set_session(session->id());
  event.mutable_opened()->set_side_socket(front.options.socket_path +
                                          kSideSocketSuffix);
  event.mutable_opened()->set_side_token(session->side_token());
  writer->Push(std::move(event));
}

}  // namespace

BuffersService::BuffersService(Front& front, const Peer& peer)
    : front_(front), peer_(peer) {}

grpc::ServerWriteReactor<v1::SessionEvent>* BuffersService::Attach(
    grpc::CallbackServerContext* context, const v1::AttachRequest* request) {
  std::shared_ptr<EventWriter> writer =
      EventWriter::Start(front_.streams, context, peer_, "Attach");
  if (front_.activity.draining()) {
    writer->Close(absl::UnavailableError("The daemon is stopping; retry"));
  } else if (request->protocol() != kProtocolVersion) {
    writer->Close(WrongProtocol(request->protocol(), kProtocolVersion));
  } else {
    OpenSession(front_, *request, peer_, writer);
  }
  return writer.get();
}

grpc::ServerUnaryReactor* BuffersService::Register(
    grpc::CallbackServerContext* context, const v1::RegisterRequest* request,
    v1::RegisterResponse* response) {
  std::shared_ptr<PendingCall> call =
      PendingCall::Start(front_.activity, context, peer_, "Register");
  StartRegisterCall(front_, call, *request, response);
  return call.get();
}

grpc::ServerUnaryReactor* BuffersService::Unregister(
    grpc::CallbackServerContext* context, const v1::UnregisterRequest* request,
    v1::UnregisterResponse*) {
  std::shared_ptr<PendingCall> call =
      PendingCall::Start(front_.activity, context, peer_, "Unregister");
  const absl::StatusOr<std::shared_ptr<ClientSession>> session =
      front_.sessions->Find(request->session());
  const auto answer = [call](const absl::Status& status) {
    if (call->Claim()) call->Finish(status);
  };
  if (!session.ok()) {
    answer(session.status());
  } else {
    (*session)->Remove(request->buffer(),
                       [answer] { answer(absl::OkStatus()); });
  }
  return call.get();
}

grpc::ServerUnaryReactor* BuffersService::List(
    grpc::CallbackServerContext* context, const v1::ListBuffersRequest* request,
    v1::ListBuffersResponse* response) {
  return AnswerNow(front_.activity, context, peer_, "List", [&](Call&) {
    const absl::StatusOr<std::shared_ptr<ClientSession>> session =
        front_.sessions->Find(request->session());
    if (!session.ok()) return session.status();
    for (const BufferRegistry::Info& info : (*session)->List()) {
      v1::BufferInfo* message = response->add_buffers();
      message->set_buffer(info.id);
      message->set_device(info.device);
      message->set_size_bytes(info.size_bytes);
      message->set_leases(info.leases);
    }
    return absl::OkStatus();
  });
}

}  // namespace kiln
