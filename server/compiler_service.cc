#include "server/compiler_service.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "jit/compile/compute_capability.h"
#include "jit/compile/errors.h"
#include "jit/compile/schedule_report.h"
#include "jit/compile/tuning.h"
#include "jit/plan/canonical.h"
#include "jit/plan/errors.h"
#include "jit/plan/plan_text.h"
#include "proto/plan_converter.h"
#include "proto/protocol.h"
#include "server/call.h"
#include "server/compile_call.h"
#include "server/idle_choices.h"
#include "server/miss_explanation.h"
#include "server/schedule_report_converter.h"
#include "server/served_request.h"
#include "server/version.h"

namespace kiln {
namespace {

// Of `kiln tune`: each is compiled and measured.
constexpr size_t kMaxAlternatives = 8;

absl::Status DescribePlan(const v1::Plan& message,
                          v1::ValidateResponse* response) {
  absl::StatusOr<Plan> plan = FromProto(message);
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<CanonicalPlan> canonical = Canonicalize(*plan);
  if (!canonical.ok()) return canonical.status();

  response->set_plan_text(ToText(canonical->plan));
  for (size_t i = 0; i < plan->outputs.size(); ++i) {
    const int slot = canonical->slot_of_output[i];
    const int output = slot - static_cast<int>(canonical->plan.inputs.size());
    const PlanOutput& canonical_output = canonical->plan.outputs[output];
    TensorDesc desc = canonical->values[canonical_output.value.index];
    desc.dtype = canonical_output.dtype;
    *response->add_outputs() = ToProto(desc);
  }
  for (const int slot : canonical->slot_of_input) {
    response->add_slot_of_input(slot);
  }
  for (const int slot : canonical->slot_of_output) {
    response->add_slot_of_output(slot);
  }
  return absl::OkStatus();
}

void FillSchedule(const CompileRequest& request, v1::ScheduleReport* schedule) {
  const absl::StatusOr<Tuning> tuning = ParseTuning(request.variant);
  *schedule = ToProto(
      ReportSchedules(request.plan, request.target, tuning.value_or(Tuning{})));
  for (const Tuning& alternative :
       Alternatives(request.plan, request.target, kMaxAlternatives)) {
    schedule->add_alternatives(ToString(alternative));
  }
}

// `known`: none if nothing is known of the compiler.
absl::Status CheckArchitecture(const Target& target,
                               const std::vector<int>& known) {
  if (target.is_cpu() || known.empty() ||
      std::find(known.begin(), known.end(), ComputeCapability(target)) !=
          known.end()) {
    return absl::OkStatus();
  }
  return UnknownArchitecture({target.arch, known});
}

absl::Status ExplainPlan(Front& front, const v1::ExplainRequest& request,
                         const std::vector<int>& architectures,
                         v1::ExplainResponse* response) {
  const absl::StatusOr<ServedRequest> served =
      ServedRequestOf(front, request.plan(), request.target(), request.grade(),
                      request.variant());
  if (!served.ok()) return served.status();
  const KeyedRequest& keyed = *served->keyed;
  const absl::Status checked =
      CheckArchitecture(keyed.request.target, architectures);
  if (!checked.ok()) return checked;
  if (request.include_schedule() && keyed.request.variant == kEagerVariant) {
    return InvalidField("variant", "Eager kernels have no schedule.",
                        keyed.request.variant, "any other");
  }
  response->set_key(keyed.key);
  response->set_key_text(keyed.key_text);
  response->set_variant(keyed.request.variant);
  if (served->tuning) *response->mutable_tuning() = *served->tuning;
  if (!request.variant().empty()) {
    for (std::string& choice : IdleChoices(keyed.request)) {
      response->add_idle_choices(std::move(choice));
    }
  }
  if (request.include_schedule()) {
    FillSchedule(keyed.request, response->mutable_schedule());
  }
  response->set_source(front.artifacts->Where(keyed.key));
  response->set_hit(response->source() != v1::SOURCE_UNSPECIFIED);
  if (response->hit()) return absl::OkStatus();
  MissExplanation miss = ExplainMiss(keyed.key_text, front.disk->List());
  response->set_nearest_key(std::move(miss.nearest_key));
  for (const KeyTextDifference& difference : miss.differences) {
    v1::KeyDifference* message = response->add_differences();
    message->set_field(difference.field);
    message->set_wanted(difference.wanted);
    message->set_found(difference.found);
  }
  return absl::OkStatus();
}

absl::Status KeepTuning(Front& front, const v1::StoreTuningRequest& request,
                        v1::StoreTuningResponse* response) {
  const absl::Status checked = CheckTuning(request.tuning());
  if (!checked.ok()) return checked;
  const absl::StatusOr<KeyedRequestTable::Shared> untuned =
      front.requests->Get(request.plan(), request.target(), request.grade());
  if (!untuned.ok()) return untuned.status();
  const absl::StatusOr<KeyedRequestTable::Shared> winner =
      front.requests->Get(request.plan(), request.target(), request.grade(),
                          request.tuning().variant());
  if (!winner.ok()) return winner.status();
  response->set_key((*winner)->key);
  return front.tunings->Put((*untuned)->key, request.tuning());
}

void FillServerInfo(const Front& front, v1::GetServerInfoResponse* response) {
  response->set_version(kVersion);
  response->set_protocol(kProtocolVersion);
  response->set_pid(getpid());
  response->set_cache_dir(front.disk->directory().string());
  response->set_nvrtc_version(front.nvrtc_version);
  response->set_toolchain(front.toolchain_id);
  response->set_compiler(std::string(CompilerDigest()));
  for (v1::DeviceInfo& device : front.devices->List()) {
    *response->add_devices() = std::move(device);
  }
  const auto uptime = std::chrono::steady_clock::now() - front.started;
  response->set_uptime_ms(
      std::chrono::duration_cast<std::chrono::milliseconds>(uptime).count());
  response->set_workers(front.artifacts->pool_counters().workers);
}

}  // namespace

CompilerService::CompilerService(Front& front, const Peer& peer)
    : front_(front), peer_(peer) {}

grpc::ServerUnaryReactor* CompilerService::Validate(
    grpc::CallbackServerContext* context, const v1::ValidateRequest* request,
    v1::ValidateResponse* response) {
  return AnswerNow(front_.activity, context, peer_, "Validate", [&](Call&) {
    return DescribePlan(request->plan(), response);
  });
}

grpc::ServerUnaryReactor* CompilerService::Compile(
    grpc::CallbackServerContext* context, const v1::CompileRequest* request,
    v1::CompileResponse* response) {
  std::shared_ptr<PendingCall> call =
      PendingCall::Start(front_.activity, context, peer_, "Compile");
  StartCompileCall(front_, call, *request, response);
  return call.get();
}

grpc::ServerUnaryReactor* CompilerService::Explain(
    grpc::CallbackServerContext* context, const v1::ExplainRequest* request,
    v1::ExplainResponse* response) {
  std::shared_ptr<PendingCall> call =
      PendingCall::Start(front_.activity, context, peer_, "Explain");
  const auto answer = [&front = front_, call, request,
                       response](const std::vector<int>& architectures) {
    if (!call->Claim()) return;
    call->Finish(StatusOf(
        [&] { return ExplainPlan(front, *request, architectures, response); }));
  };
  const absl::StatusOr<Target> target = ParseTarget(request->target());
  if (target.ok() && !target->is_cpu()) {
    front_.artifacts->WhenArchitecturesKnown(answer);
  } else {
    answer({});
  }
  return call.get();
}

grpc::ServerUnaryReactor* CompilerService::StoreTuning(
    grpc::CallbackServerContext* context, const v1::StoreTuningRequest* request,
    v1::StoreTuningResponse* response) {
  return AnswerNow(front_.activity, context, peer_, "StoreTuning", [&](Call&) {
    return KeepTuning(front_, *request, response);
  });
}

grpc::ServerUnaryReactor* CompilerService::GetServerInfo(
    grpc::CallbackServerContext* context, const v1::GetServerInfoRequest*,
    v1::GetServerInfoResponse* response) {
  std::shared_ptr<PendingCall> call =
      PendingCall::Start(front_.activity, context, peer_, "GetServerInfo");
  front_.devices->WhenDescribed([&front = front_, call, response] {
    if (!call->Claim()) return;
    FillServerInfo(front, response);
    call->Finish(absl::OkStatus());
  });
  return call.get();
}

}  // namespace kiln
