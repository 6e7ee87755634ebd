#include "server/compile_call.h"

#include "server/cache_key.h"
#include "server/errors.h"
#include "server/miss_explanation.h"
#include "server/served_request.h"

namespace kiln {
namespace {

void FillArtifact(const ArtifactProvider::Found& found,
                  const v1::CompileRequest& request,
                  v1::CompileResponse* response) {
  response->set_source(found.source);
  response->set_target(ToString(found.artifact->target));
  if (!request.include_artifact()) return;
  response->set_artifact(request.include_source()
                             ? found.artifact->bytes
                             : found.artifact->bytes_without_source);
}

void FillTiming(const Call& call, const ArtifactProvider::Found& found,
                v1::CompileTiming* timing) {
  timing->set_total_us(call.elapsed_us());
  if (found.source != v1::COMPILED) {
    timing->set_lookup_us(timing->total_us() - timing->key_us());
    return;
  }
  timing->set_queue_us(found.artifact->queue_us);
  timing->set_generate_us(found.artifact->generate_us);
  timing->set_nvrtc_us(found.artifact->nvrtc_us);
  timing->set_store_us(found.artifact->store_us);
}

absl::Status CompileByKey(Front& front, const Call& call,
                          const v1::CompileRequest& request,
                          v1::CompileResponse* response) {
  if (!IsKey(request.key())) return MalformedKey(request.key());
  const absl::StatusOr<ArtifactProvider::Found> found =
      front.artifacts->Lookup(request.key(), call.id());
  if (!found.ok()) return found.status();
  response->set_key(request.key());
  FillArtifact(*found, request, response);
  FillTiming(call, *found, response->mutable_timing());
  return absl::OkStatus();
}

absl::Status HitOnly(Front& front, const Call& call, const KeyedRequest& keyed,
                     const v1::CompileRequest& request,
                     v1::CompileResponse* response) {
  const absl::StatusOr<ArtifactProvider::Found> found =
      front.artifacts->Lookup(keyed.key, call.id());
  if (!found.ok()) {
    return NotCached(keyed.key,
                     ToText(ExplainMiss(keyed.key_text, front.disk->List())));
  }
  FillArtifact(*found, request, response);
  FillTiming(call, *found, response->mutable_timing());
  return absl::OkStatus();
}

void FillKey(const KeyedRequest& keyed, const Call& call,
             v1::CompileResponse* response) {
  response->set_key(keyed.key);
  response->set_variant(keyed.request.variant);
  for (const int slot : keyed.request.plan.slot_of_input) {
    response->add_slot_of_input(slot);
  }
  for (const int slot : keyed.request.plan.slot_of_output) {
    response->add_slot_of_output(slot);
  }
  response->mutable_timing()->set_key_us(call.elapsed_us());
}

void FindOrCompile(Front& front, const std::shared_ptr<PendingCall>& call,
                   const KeyedRequest& keyed, const v1::CompileRequest& request,
                   v1::CompileResponse* response) {
  const ArtifactProvider::Ticket ticket = front.artifacts->Get(
      keyed, {call->call().id(), request.prewarm()},
      [call, &request,
       response](absl::StatusOr<ArtifactProvider::Found> found) {
        // From here on request and response are alive only if we claim.
        if (!call->Claim()) return;
        if (!found.ok()) return call->Finish(found.status());
        FillArtifact(*found, request, response);
        FillTiming(call->call(), *found, response->mutable_timing());
        call->Finish(absl::OkStatus());
      });
  call->OnClientGone([&front, ticket] { front.artifacts->Cancel(ticket); });
}

}  // namespace

void StartCompileCall(Front& front, std::shared_ptr<PendingCall> call,
                      const v1::CompileRequest& request,
                      v1::CompileResponse* response) {
  const auto answer = [&call](const absl::Status& status) {
    if (call->Claim()) call->Finish(status);
  };
  const absl::Status admitted = call->call().admitted();
  if (!admitted.ok()) return answer(admitted);
  if (request.what_case() == v1::CompileRequest::kKey) {
    return answer(CompileByKey(front, call->call(), request, response));
  }

  const absl::StatusOr<ServedRequest> served =
      ServedRequestOf(front, request.plan(), request.target(), request.grade(),
                      request.variant());
  if (!served.ok()) return answer(served.status());
  const KeyedRequest& keyed = *served->keyed;
  FillKey(keyed, call->call(), response);
  if (front.recorder) {
    front.recorder->Record(keyed, request.variant(), call->call().id());
  }
  if (request.policy() == v1::HIT_ONLY) {
    return answer(HitOnly(front, call->call(), keyed, request, response));
  }
  FindOrCompile(front, call, keyed, request, response);
}

}  // namespace kiln
