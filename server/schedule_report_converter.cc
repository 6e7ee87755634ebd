#include "server/schedule_report_converter.h"

namespace kiln {
namespace {

v1::ScheduleCandidate ToProto(const ScheduleCandidate& candidate) {
  v1::ScheduleCandidate message;
  message.set_kind(candidate.kind);
  message.set_detail(candidate.detail);
  message.set_fits(candidate.fits);
  message.set_chosen(candidate.chosen);
  if (candidate.cycles) message.set_predicted_cycles(*candidate.cycles);
  if (candidate.microseconds) {
    message.set_predicted_us(*candidate.microseconds);
  }
  message.set_reason(candidate.reason);
  return message;
}

v1::ScheduledKernel ToProto(const KernelReport& kernel) {
  v1::ScheduledKernel message;
  message.set_symbol(kernel.symbol);
  for (const std::string& op : kernel.computes) message.add_computes(op);
  message.set_prepares(kernel.prepares);
  for (const uint32_t extent : kernel.grid) message.add_grid(extent);
  message.set_threads(kernel.threads);
  message.set_dynamic_shared_bytes(kernel.dynamic_shared_bytes);
  message.set_read_bytes(kernel.read_bytes);
  message.set_written_bytes(kernel.written_bytes);
  if (kernel.microseconds) message.set_predicted_us(*kernel.microseconds);
  for (const ScheduleCandidate& candidate : kernel.candidates) {
    *message.add_candidates() = ToProto(candidate);
  }
  message.set_why(kernel.why);
  return message;
}

v1::ScheduleVariant ToProto(const VariantReport& variant) {
  v1::ScheduleVariant message;
  v1::Requirements* const required = message.mutable_requirements();
  required->set_min_sm_count(variant.requires_.min_sm_count);
  required->set_cooperative(variant.requires_.cooperative);
  required->set_cluster_size(variant.requires_.cluster_size);
  required->set_shared_optin_bytes(variant.requires_.shared_optin_bytes);
  message.set_workspace_bytes(variant.workspace_bytes);
  message.set_prepared_bytes(variant.prepared_bytes);
  for (const std::string& text : variant.rewrites) message.add_rewrites(text);
  for (const KernelReport& kernel : variant.kernels) {
    *message.add_kernels() = ToProto(kernel);
  }
  return message;
}

}  // namespace

v1::ScheduleReport ToProto(const ScheduleReport& report) {
  v1::ScheduleReport message;
  message.set_device(report.device);
  message.set_clock_mhz(report.clock_mhz);
  message.set_memory_gb_per_s(report.memory_gb_per_s);
  for (const VariantReport& variant : report.variants) {
    *message.add_variants() = ToProto(variant);
  }
  return message;
}

}  // namespace kiln
