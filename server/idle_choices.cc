#include "server/idle_choices.h"

#include "jit/compile/schedule_report.h"
#include "jit/compile/tuning.h"
#include "server/schedule_report_converter.h"

namespace kiln {
namespace {

// All that is known of the schedule, but for reasons, which name the variant.
std::string ScheduleBytes(const CompileRequest& request, const Tuning& tuning) {
  v1::ScheduleReport report =
      ToProto(ReportSchedules(request.plan, request.target, tuning));
  for (v1::ScheduleVariant& variant : *report.mutable_variants()) {
    for (v1::ScheduledKernel& kernel : *variant.mutable_kernels()) {
      kernel.clear_why();
    }
  }
  return report.SerializeAsString();
}

}  // namespace

std::vector<std::string> IdleChoices(const CompileRequest& request) {
  const Tuning tuning = ParseTuning(request.variant).value_or(Tuning{});
  if (tuning == Tuning{} || tuning.eager) return {};
  const std::string schedule = ScheduleBytes(request, tuning);
  std::vector<std::string> idle;
  for (const Tuning& part :
       {Tuning{.conv = tuning.conv}, Tuning{.rows = tuning.rows},
        Tuning{.images = tuning.images},
        Tuning{.correlations = tuning.correlations},
        Tuning{.linear = tuning.linear}}) {
    const Tuning rest = {tuning.conv - part.conv, tuning.rows - part.rows,
                         tuning.images - part.images,
                         tuning.correlations - part.correlations,
                         tuning.linear - part.linear};
    if (part != Tuning{} && ScheduleBytes(request, rest) == schedule) {
      idle.push_back(ToString(part));
    }
  }
  return idle;
}

}  // namespace kiln
