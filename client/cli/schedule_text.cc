#include "client/cli/schedule_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace kiln::cli {
namespace {

// "15.0 GB", as rates are in powers of ten.
std::string BytesText(int64_t bytes) {
  double value = static_cast<double>(bytes);
  for (const char* unit : {"B", "kB", "MB", "GB"}) {
    if (value < 1000) {
      return fmt::format("{:.{}f} {}", value,
                         value < 100 && *unit != 'B' ? 1 : 0, unit);
    }
    value /= 1000;
  }
  return fmt::format("{:.1f} TB", value);
}

std::string MicrosecondsText(double us) {
  return fmt::format("{:.{}f} us", us, us < 10 ? 2 : us < 100 ? 1 : 0);
}

std::string DeviceText(const v1::ScheduleReport& report) {
  if (report.device().empty()) {
    return "  no known device has this target: no clock, so cycles, and no "
           "memory rate\n";
  }
  return fmt::format("  as models predict for {}: {} MHz, {} GB/s\n",
                     report.device(), report.clock_mhz(),
                     report.memory_gb_per_s());
}

std::string RequirementsText(const v1::Requirements& required) {
  std::vector<std::string> texts;
  if (required.min_sm_count() > 0) {
    texts.push_back(fmt::format("{} multiprocessors", required.min_sm_count()));
  }
  if (required.cooperative()) texts.push_back("a cooperative launch");
  if (required.cluster_size() > 0) {
    texts.push_back(fmt::format("clusters of {}", required.cluster_size()));
  }
  if (required.shared_optin_bytes() > 0) {
    texts.push_back(fmt::format("{} of shared memory to a block",
                                BytesText(required.shared_optin_bytes())));
  }
  if (texts.empty()) return "asks nothing of the device";
  return fmt::format("needs {}", fmt::join(texts, ", "));
}

std::string PredictionText(const v1::ScheduleCandidate& candidate) {
  std::string text;
  if (candidate.has_predicted_us()) {
    text = MicrosecondsText(candidate.predicted_us());
  }
  if (candidate.has_predicted_cycles()) {
    text += fmt::format("{}{:.0f} cycles", text.empty() ? "" : " = ",
                        candidate.predicted_cycles());
  }
  return text;
}

std::string CandidateText(const Terminal& terminal,
                          const v1::ScheduleCandidate& candidate) {
  using Style = Terminal::Style;
  if (!candidate.fits()) {
    return terminal.Styled(Style::kFaint,
                           fmt::format("        - {:<26} {}", candidate.kind(),
                                       candidate.reason())) +
           "\n";
  }
  const std::string line = fmt::format(
      "      {} {:<26} {}; {}", candidate.chosen() ? "->" : "  ",
      candidate.kind(), PredictionText(candidate), candidate.detail());
  return (candidate.chosen() ? terminal.Styled(Style::kGood, line) : line) +
         "\n";
}

std::string KernelText(const Terminal& terminal, int number,
                       const v1::ScheduledKernel& kernel) {
  std::string text = fmt::format(
      "    {}. {}{}{}\n", number, kernel.symbol(),
      kernel.has_predicted_us() ? ", " + MicrosecondsText(kernel.predicted_us())
                                : "",
      kernel.prepares() ? ", only when a parameter has changed" : "");
  for (const std::string& op : kernel.computes()) {
    text += fmt::format("         {}\n", op);
  }
  text += fmt::format(
      "       {} blocks of {} threads, {} of dynamic shared memory; reads {}, "
      "writes {}\n",
      fmt::join(kernel.grid(), " x "), kernel.threads(),
      BytesText(kernel.dynamic_shared_bytes()), BytesText(kernel.read_bytes()),
      BytesText(kernel.written_bytes()));
  text += fmt::format("       why: {}\n", kernel.why());
  for (const v1::ScheduleCandidate& candidate : kernel.candidates()) {
    text += CandidateText(terminal, candidate);
  }
  return text;
}

std::string VariantText(const Terminal& terminal, const std::string& heading,
                        const v1::ScheduleVariant& variant) {
  std::string text =
      fmt::format("  {}: {}; workspace {}, prepared weights {}\n", heading,
                  RequirementsText(variant.requirements()),
                  BytesText(variant.workspace_bytes()),
                  BytesText(variant.prepared_bytes()));
  for (const std::string& rewrite : variant.rewrites()) {
    text += fmt::format("    rewrite: {}\n", rewrite);
  }
  int number = 0;
  for (const v1::ScheduledKernel& kernel : variant.kernels()) {
    text += KernelText(terminal, ++number, kernel);
  }
  return text;
}

Json CandidateJson(const v1::ScheduleCandidate& candidate) {
  Json json = {{"kind", candidate.kind()},
               {"fits", candidate.fits()},
               {"chosen", candidate.chosen()}};
  if (!candidate.fits()) {
    json["reason"] = candidate.reason();
    return json;
  }
  json["detail"] = candidate.detail();
  if (candidate.has_predicted_cycles()) {
    json["predicted_cycles"] = candidate.predicted_cycles();
  }
  if (candidate.has_predicted_us()) {
    json["predicted_us"] = candidate.predicted_us();
  }
  return json;
}

Json KernelJson(const v1::ScheduledKernel& kernel) {
  Json candidates = Json::array();
  for (const v1::ScheduleCandidate& candidate : kernel.candidates()) {
    candidates.push_back(CandidateJson(candidate));
  }
  Json json = {{"symbol", kernel.symbol()},
               {"computes", std::vector<std::string>(kernel.computes().begin(),
                                                     kernel.computes().end())},
               {"prepares", kernel.prepares()},
               {"grid", std::vector<uint32_t>(kernel.grid().begin(),
                                              kernel.grid().end())},
               {"threads", kernel.threads()},
               {"dynamic_shared_bytes", kernel.dynamic_shared_bytes()},
               {"read_bytes", kernel.read_bytes()},
               {"written_bytes", kernel.written_bytes()}};
  if (kernel.has_predicted_us()) json["predicted_us"] = kernel.predicted_us();
  json["why"] = kernel.why();
  json["candidates"] = candidates;
  return json;
}

Json VariantJson(const v1::ScheduleVariant& variant) {
  const v1::Requirements& required = variant.requirements();
  Json kernels = Json::array();
  for (const v1::ScheduledKernel& kernel : variant.kernels()) {
    kernels.push_back(KernelJson(kernel));
  }
  return {{"requirements",
           {{"min_sm_count", required.min_sm_count()},
            {"cooperative", required.cooperative()},
            {"cluster_size", required.cluster_size()},
            {"shared_optin_bytes", required.shared_optin_bytes()}}},
          {"workspace_bytes", variant.workspace_bytes()},
          {"prepared_bytes", variant.prepared_bytes()},
          {"rewrites", std::vector<std::string>(variant.rewrites().begin(),
                                                variant.rewrites().end())},
          {"kernels", kernels}};
}

}  // namespace

std::string ScheduleText(const Terminal& terminal,
                         const v1::ScheduleReport& report) {
  if (report.variants().empty()) {
    return "  nothing is scheduled: the cpu evaluates the plan op by op\n";
  }
  std::string text = DeviceText(report);
  for (int i = 0; i < report.variants_size(); ++i) {
    text +=
        VariantText(terminal, i == 0 ? "schedule" : "where that does not fit",
                    report.variants(i));
  }
  return text;
}

Json ScheduleJson(const v1::ScheduleReport& report) {
  Json json = Json::object();
  if (!report.device().empty()) {
    json["device"] = report.device();
    json["clock_mhz"] = report.clock_mhz();
    json["memory_gb_per_s"] = report.memory_gb_per_s();
  }
  json["variants"] = Json::array();
  for (const v1::ScheduleVariant& variant : report.variants()) {
    json["variants"].push_back(VariantJson(variant));
  }
  return json;
}

}  // namespace kiln::cli
