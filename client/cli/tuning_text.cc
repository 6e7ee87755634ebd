#include "client/cli/tuning_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace kiln::cli {
namespace {

std::string DateText(int64_t unix_ms) {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC",
                     fmt::gmtime(static_cast<std::time_t>(unix_ms / 1000)));
}

std::string OriginText(const v1::Tuning& tuning) {
  std::string text =
      fmt::format("  {} by tuning, {}, {}", tuning.variant(), tuning.device(),
                  DateText(tuning.measured_unix_ms()));
  if (tuning.clock_mhz() > 0) {
    text += fmt::format(", at most {} MHz, memory {} MHz", tuning.clock_mhz(),
                        tuning.memory_clock_mhz());
  }
  if (!tuning.driver().empty()) text += "\n    " + tuning.driver();
  return text + "\n";
}

Json MeasurementJson(const v1::TuningMeasurement& measured) {
  Json json = {{"variant", measured.variant()}, {"key", measured.key()}};
  if (!measured.error().empty()) {
    json["error"] = measured.error();
    return json;
  }
  json["runs"] = measured.runs();
  json["median_us"] = measured.median_us();
  json["low_us"] = measured.low_us();
  json["high_us"] = measured.high_us();
  return json;
}

}  // namespace

std::string TuningText(const Terminal& terminal, const v1::Tuning& tuning) {
  std::string text = OriginText(tuning);
  for (const v1::TuningMeasurement& measured : tuning.measured()) {
    if (!measured.error().empty()) {
      text += fmt::format("     - {:<12} {}\n", measured.variant(),
                          measured.error());
      continue;
    }
    const bool won = measured.variant() == tuning.variant();
    const std::string line = fmt::format(
        "    {} {:<12} {:.1f} us, half of {} runs in {:.1f} to {:.1f}",
        won ? "->" : "  ", measured.variant(), measured.median_us(),
        measured.runs(), measured.low_us(), measured.high_us());
    text += (won ? terminal.Styled(Terminal::Style::kGood, line) : line) + "\n";
  }
  return text;
}

Json TuningJson(const v1::Tuning& tuning) {
  Json measured = Json::array();
  for (const v1::TuningMeasurement& measurement : tuning.measured()) {
    measured.push_back(MeasurementJson(measurement));
  }
  Json json = {{"variant", tuning.variant()}, {"device", tuning.device()}};
  if (!tuning.driver().empty()) json["driver"] = tuning.driver();
  if (tuning.clock_mhz() > 0) {
    json["clock_mhz"] = tuning.clock_mhz();
    json["memory_clock_mhz"] = tuning.memory_clock_mhz();
  }
  json["measured_unix_ms"] = tuning.measured_unix_ms();
  json["rotated_sets"] = tuning.rotated_sets();
  json["measured"] = measured;
  return json;
}

}  // namespace kiln::cli
