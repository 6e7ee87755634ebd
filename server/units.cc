#include "server/units.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace kiln {
namespace {

struct Unit {
  std::string_view name;
  int64_t factor;
};

constexpr Unit kSizeUnits[] = {{"", 1},
                               {"B", 1},
                               {"KiB", int64_t{1} << 10},
                               {"MiB", int64_t{1} << 20},
                               {"GiB", int64_t{1} << 30},
                               {"TiB", int64_t{1} << 40}};
constexpr Unit kDurationUnits[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
constexpr int64_t kYearMs = int64_t{366} * 24 * 3'600'000;

absl::StatusOr<int64_t> ParseWithUnit(std::string_view text,
                                      std::span<const Unit> units,
                                      int64_t limit, std::string_view form) {
  const auto refuse = [&] {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not {}", text, form));
  };
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || number < 0) return refuse();

  std::string_view rest(parsed.ptr, end - parsed.ptr);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  for (const Unit& unit : units) {
    if (rest != unit.name) continue;
    if (number > limit / unit.factor) return refuse();
    return number * unit.factor;
  }
  return refuse();
}

}  // namespace

absl::StatusOr<int64_t> ParseSize(std::string_view text) {
  return ParseWithUnit(text, kSizeUnits, std::numeric_limits<int64_t>::max(),
                       "a size such as 10GiB or 512MiB");
}

absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  const absl::StatusOr<int64_t> ms =
      ParseWithUnit(text, kDurationUnits, kYearMs,
                    "a duration such as 250ms, 30s, 10m or 2h");
  if (!ms.ok()) return ms.status();
  return std::chrono::milliseconds(*ms);
}

}  // namespace kiln
