#include "server/executor_service.h"

#include <memory>
#include <utility>
#include <vector>

#include "server/cache_key.h"
#include "server/call.h"
#include "server/errors.h"

namespace kiln {
namespace {

std::vector<BufferRegistry::Binding> Bindings(
    const v1::ExecuteRequest& request) {
  std::vector<BufferRegistry::Binding> bindings;
  bindings.reserve(request.bindings_size());
  for (const v1::Binding& binding : request.bindings()) {
    bindings.push_back(
        {binding.slot(), binding.buffer(), binding.offset_bytes()});
  }
  return bindings;
}

absl::StatusOr<ArtifactProvider::Shared> FindArtifact(
    Front& front, const Call& call, const v1::ExecuteRequest& request) {
  if (!IsKey(request.key())) return MalformedKey(request.key());
  const absl::StatusOr<ArtifactProvider::Found> found =
      front.artifacts->Lookup(request.key(), call.id());
  if (!found.ok()) return found.status();
  const Target& target = found->artifact->target;
  // The executor of a GPU compares the exact target when it loads.
  if (target.is_cpu() != (request.device() == "cpu")) {
    return WrongTarget(ToString(target), request.device());
  }
  return found->artifact;
}

absl::Status StartExecute(Front& front, std::shared_ptr<PendingCall> call,
                          const v1::ExecuteRequest& request,
                          v1::ExecuteResponse* response) {
  const absl::Status admitted = call->call().admitted();
  if (!admitted.ok()) return admitted;
  const absl::StatusOr<std::shared_ptr<ClientSession>> found =
      front.sessions->Find(request.session());
  if (!found.ok()) return found.status();
  const absl::StatusOr<std::shared_ptr<ExecutorProcess>> executor =
      front.devices->Find(request.device());
  if (!executor.ok()) return executor.status();
  const absl::StatusOr<ArtifactProvider::Shared> artifact =
      FindArtifact(front, call->call(), request);
  if (!artifact.ok()) return artifact.status();
  const std::shared_ptr<ClientSession>& session = *found;
  absl::StatusOr<BufferRegistry::Bound> bound =
      session->Bind(request.device(), (*artifact)->slots, Bindings(request));
  if (!bound.ok()) return bound.status();

  ExecuteJob job;
  job.session = session->id();
  job.parameter_version = request.parameter_version();
  job.slots = std::move(bound->slots);
  // A client that gives up does not end its lease: the device may still write.
  const auto done = [session, call, response, lease = bound->lease](
                        const absl::StatusOr<int64_t>& execute_us) {
    session->Release(lease);
    if (!call->Claim()) return;
    if (execute_us.ok()) {
      response->set_execute_us(*execute_us);
      response->set_total_us(call->call().elapsed_us());
    }
    call->Finish(execute_us.status());
  };
  (*executor)->Execute(request.key(),
                       std::shared_ptr<const std::string>(
                           *artifact, &(*artifact)->bytes_without_source),
                       std::move(job), done);
  return absl::OkStatus();
}

}  // namespace

ExecutorService::ExecutorService(Front& front, const Peer& peer)
    : front_(front), peer_(peer) {}

grpc::ServerUnaryReactor* ExecutorService::Execute(
    grpc::CallbackServerContext* context, const v1::ExecuteRequest* request,
    v1::ExecuteResponse* response) {
  std::shared_ptr<PendingCall> call =
      PendingCall::Start(front_.activity, context, peer_, "Execute");
  const absl::Status status = StartExecute(front_, call, *request, response);
  if (!status.ok() && call->Claim()) call->Finish(status);
  return call.get();
}

}  // namespace kiln
