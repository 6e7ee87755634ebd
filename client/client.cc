#include "client/client.h"

#include <utility>

#include "client/connection.h"
#include "client/session_state.h"
#include "proto/plan_converter.h"

namespace kiln {
namespace {

v1::CompileRequest ToRequest(const Plan& plan, const CompileOptions& options) {
  v1::CompileRequest request;
  *request.mutable_plan() = ToProto(plan);
  request.set_target(options.target);
  if (options.grade.has_value()) {
    request.set_grade(static_cast<v1::Grade>(*options.grade));
  }
  request.set_policy(options.hit_only ? v1::HIT_ONLY : v1::ALLOW);
  request.set_include_artifact(options.include_artifact ||
                               options.include_source);
  request.set_include_source(options.include_source);
  request.set_prewarm(options.prewarm);
  request.set_variant(options.variant);
  return request;
}

ArtifactSource FromProto(v1::Source source) {
  if (source == v1::MEMORY) return ArtifactSource::kMemory;
  if (source == v1::DISK) return ArtifactSource::kDisk;
  return ArtifactSource::kCompiled;
}

CompilePhases FromProto(const v1::CompileTiming& timing) {
  CompilePhases phases;
  phases.key_us = timing.key_us();
  phases.lookup_us = timing.lookup_us();
  phases.queue_us = timing.queue_us();
  phases.generate_us = timing.generate_us();
  phases.nvrtc_us = timing.nvrtc_us();
  phases.store_us = timing.store_us();
  phases.total_us = timing.total_us();
  return phases;
}

CompiledPlan FromResponse(const Plan& plan, v1::CompileResponse& response) {
  CompiledPlan compiled;
  compiled.plan = plan;
  compiled.key = response.key();
  compiled.target = response.target();
  compiled.source = FromProto(response.source());
  compiled.slot_of_input.assign(response.slot_of_input().begin(),
                                response.slot_of_input().end());
  compiled.slot_of_output.assign(response.slot_of_output().begin(),
                                 response.slot_of_output().end());
  compiled.artifact = std::move(*response.mutable_artifact());
  compiled.timing = FromProto(response.timing());
  return compiled;
}

}  // namespace

std::string_view ArtifactSourceName(ArtifactSource source) {
  switch (source) {
    case ArtifactSource::kMemory:
      return "memory";
    case ArtifactSource::kDisk:
      return "disk";
    case ArtifactSource::kCompiled:
      return "compiled";
  }
  return "unknown";
}

Client::Client(std::shared_ptr<client::Connection> connection)
    : connection_(std::move(connection)) {}

absl::StatusOr<Client> Client::Connect(ConnectOptions options) {
  absl::StatusOr<std::shared_ptr<client::Connection>> connection =
      client::Connection::Open(std::move(options));
  if (!connection.ok()) return connection.status();
  return Client(*std::move(connection));
}

absl::StatusOr<CompiledPlan> Client::Compile(const Plan& plan,
                                             const CompileOptions& options) {
  absl::StatusOr<v1::CompileResponse> response =
      connection_->Call(connection_->compiler(), &v1::Compiler::Stub::Compile,
                        ToRequest(plan, options), options.timeout);
  if (!response.ok()) return response.status();
  return FromResponse(plan, *response);
}

absl::StatusOr<Session> Client::OpenSession(
    std::function<void(const SessionEvent&)> on_event) {
  absl::StatusOr<std::shared_ptr<client::SessionState>> state =
      client::SessionState::Open(connection_, std::move(on_event));
  if (!state.ok()) return state.status();
  return Session(*std::move(state));
}

absl::StatusOr<ServerInfo> Client::GetServerInfo() {
  const absl::StatusOr<v1::GetServerInfoResponse> response = connection_->Call(
      connection_->compiler(), &v1::Compiler::Stub::GetServerInfo,
      v1::GetServerInfoRequest());
  if (!response.ok()) return response.status();
  ServerInfo info;
  info.version = response->version();
  info.pid = response->pid();
  info.cache_dir = response->cache_dir();
  info.nvrtc_version = response->nvrtc_version();
  for (const v1::DeviceInfo& device : response->devices()) {
    info.devices.push_back({device.device(), device.name(), device.target(),
                            device.state(), device.uuid()});
  }
  return info;
}

}  // namespace kiln
