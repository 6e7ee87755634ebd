#include "server/process_converter.h"

#include <string>
#include <utility>

#include "jit/plan/errors.h"
#include "proto/plan_converter.h"

namespace kiln {
namespace {

// As kiln.v1.ErrorDetail promises.
constexpr size_t kMaxTextBytes = 64 << 10;

}  // namespace

ipc::Failure ToProto(const absl::Status& status) {
  const ErrorDetail detail = DetailOf(status);
  ipc::Failure failure;
  failure.set_code(static_cast<int>(status.code()));
  failure.set_message(std::string(status.message()));
  v1::ErrorDetail* out = failure.mutable_detail();
  out->set_field(detail.field);
  out->set_value(detail.value);
  out->set_limit(detail.limit);
  out->set_hint(detail.hint);
  out->set_compile_log(detail.compile_log.substr(0, kMaxTextBytes));
  out->set_generated_source(detail.generated_source.substr(0, kMaxTextBytes));
  return failure;
}

absl::Status FromProto(const ipc::Failure& failure) {
  auto code = static_cast<absl::StatusCode>(failure.code());
  if (failure.code() < 1 || failure.code() > 16) {
    code = absl::StatusCode::kInternal;
  }
  const v1::ErrorDetail& in = failure.detail();
  ErrorDetail detail;
  detail.field = in.field();
  detail.value = in.value();
  detail.limit = in.limit();
  detail.hint = in.hint();
  detail.compile_log = in.compile_log();
  detail.generated_source = in.generated_source();
  absl::Status status(code, failure.message());
  return detail == ErrorDetail() ? status : WithDetail(status, detail);
}

ipc::CompileJob ToProto(const CompileRequest& request,
                        std::chrono::milliseconds soft_deadline) {
  ipc::CompileJob job;
  *job.mutable_plan() = ToProto(request.plan.plan);
  job.set_target(ToString(request.target));
  job.set_toolchain(request.toolchain);
  job.set_variant(request.variant);
  job.set_soft_deadline_ms(soft_deadline.count());
  return job;
}

absl::StatusOr<CompileRequest> FromProto(const ipc::CompileJob& job) {
  absl::StatusOr<Plan> plan = FromProto(job.plan());
  if (!plan.ok()) return plan.status();
  absl::StatusOr<CanonicalPlan> canonical = Canonicalize(*plan);
  if (!canonical.ok()) return canonical.status();
  absl::StatusOr<Target> target = ParseTarget(job.target());
  if (!target.ok()) return target.status();

  CompileRequest request;
  request.plan = *std::move(canonical);
  request.target = *target;
  request.toolchain = job.toolchain();
  request.variant = job.variant();
  return request;
}

ipc::Described ToProto(const DeviceDescription& description) {
  ipc::Described message;
  message.set_device(description.device);
  message.set_name(description.name);
  message.set_uuid(description.uuid);
  message.set_target(ToString(description.target));
  message.set_memory_bytes(description.memory_bytes);
  return message;
}

absl::StatusOr<DeviceDescription> FromProto(const ipc::Described& message) {
  absl::StatusOr<Target> target = ParseTarget(message.target());
  if (!target.ok()) return target.status();
  DeviceDescription description;
  description.device = message.device();
  description.name = message.name();
  description.uuid = message.uuid();
  description.target = *target;
  description.memory_bytes = message.memory_bytes();
  return description;
}

}  // namespace kiln
