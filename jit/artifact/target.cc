#include "jit/artifact/target.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "fmt/format.h"
#include "jit/plan/errors.h"

namespace kiln {
namespace {

// The first device of an architecture is the one that a bare architecture
// means. Counts, boost clocks and rates: NVIDIA's architecture whitepapers and
// product briefs; of a device that is sold with several memories, the slowest.
constexpr std::array kDevices = {
    KnownDevice{"h100-sxm", "sm_90a", 132, 1980, 3350},
    KnownDevice{"h100-pcie", "sm_90a", 114, 1755, 2039},
    KnownDevice{"h100-nvl", "sm_90a", 132, 1785, 3938},
    KnownDevice{"h200", "sm_90a", 132, 1980, 4800},
    KnownDevice{"gh200", "sm_90a", 132, 1980, 4000},
    KnownDevice{"h20", "sm_90a", 78, 1980, 4000},
    KnownDevice{"a100", "sm_80", 108, 1410, 1555},
    KnownDevice{"a30", "sm_80", 56, 1440, 933},
    KnownDevice{"a10", "sm_86", 72, 1695, 600},
    KnownDevice{"a40", "sm_86", 84, 1740, 696},
    KnownDevice{"rtx3090", "sm_86", 82, 1695, 936},
    KnownDevice{"l4", "sm_89", 58, 2040, 300},
    KnownDevice{"l40s", "sm_89", 142, 2520, 864},
    KnownDevice{"rtx4090", "sm_89", 128, 2520, 1008},
    KnownDevice{"t4", "sm_75", 40, 1590, 320},
};

// Far above any device; keeps grids computed from it in range.
constexpr int kMaxSmCount = 65535;

// NVRTC 13 compiles for none that is older.
constexpr int kOldestArchitecture = 75;

// The first that have a suffix: CUDA C++ Programming Guide, "Feature
// Availability", on architecture-specific and family-specific features.
constexpr int kFirstWithA = 90;
constexpr int kFirstWithF = 100;

// "sm_", two or three digits, at most one of the suffixes that NVRTC knows:
// `a` (this architecture only) and `f` (its family).
bool IsArchitecture(std::string_view text) {
  if (text.substr(0, 3) != "sm_") return false;
  text.remove_prefix(3);
  if (!text.empty() && (text.back() == 'a' || text.back() == 'f')) {
    text.remove_suffix(1);
  }
  return (text.size() == 2 || text.size() == 3) && text.front() != '0' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// 90 for "sm_90a", which IsArchitecture.
int NumberOf(std::string_view architecture) {
  int number = 0;
  std::from_chars(architecture.data() + 3,
                  architecture.data() + architecture.size(), number);
  return number;
}

// `architecture` is one by IsArchitecture.
bool HasItsSuffix(std::string_view architecture) {
  const int number = NumberOf(architecture);
  if (architecture.back() == 'a') return number >= kFirstWithA;
  return architecture.back() != 'f' || number >= kFirstWithF;
}

std::optional<int> ParseSmCount(std::string_view text) {
  int count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end || text.front() == '0') {
    return std::nullopt;
  }
  if (count < 1 || count > kMaxSmCount) return std::nullopt;
  return count;
}

// "sm_90a/1 to sm_90a/65535".
std::string CountsOf(std::string_view arch) {
  return fmt::format("{0}/1 to {0}/{1}", arch, kMaxSmCount);
}

// "sm_90a, sm_80, ...", each once.
std::string ArchitecturesOfDevices() {
  std::string text;
  std::string_view last;
  for (const KnownDevice& device : kDevices) {
    if (device.arch == last) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", device.arch);
    last = device.arch;
  }
  return text;
}

absl::Status UnknownTarget(std::string_view text) {
  std::string allowed = fmt::format("cpu, sm_NN/<1 to {} multiprocessors>, {}",
                                    kMaxSmCount, ArchitecturesOfDevices());
  for (const KnownDevice& device : kDevices) {
    allowed += fmt::format(", {}", device.name);
  }
  return InvalidField("target", "names no target", text, allowed);
}

absl::Status TooOld(std::string_view arch) {
  return UnknownField("target", "is older than what Kiln compiles for", arch,
                      fmt::format("sm_{} and later", kOldestArchitecture));
}

absl::Status NoSuchSuffix(std::string_view arch) {
  std::string allowed(arch.substr(0, arch.size() - 1));
  if (NumberOf(arch) >= kFirstWithA) allowed += fmt::format(", {}a", allowed);
  return InvalidField("target", "has a suffix that its architecture has not",
                      arch, allowed);
}

absl::Status NoSmCount(std::string_view arch) {
  return InvalidField("target", "lacks its count of multiprocessors", arch,
                      fmt::format("{}; without a count {}", CountsOf(arch),
                                  ArchitecturesOfDevices()));
}

absl::Status BadSmCount(std::string_view text, std::string_view arch) {
  return InvalidField("target", "has no such count of multiprocessors", text,
                      CountsOf(arch));
}

}  // namespace

std::string ToString(const Target& target) {
  if (target.is_cpu()) return target.arch;
  return fmt::format("{}/{}", target.arch, target.sm_count);
}

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  if (text == "cpu") return Target{"cpu", 0};
  for (const KnownDevice& device : kDevices) {
    if (text == device.name || text == device.arch) {
      return Target{std::string(device.arch), device.sm_count};
    }
  }
  const size_t slash = text.find('/');
  const std::string_view arch = text.substr(0, slash);
  if (!IsArchitecture(arch)) return UnknownTarget(text);
  if (NumberOf(arch) < kOldestArchitecture) return TooOld(arch);
  if (!HasItsSuffix(arch)) return NoSuchSuffix(arch);
  if (slash == std::string_view::npos) return NoSmCount(arch);
  const std::optional<int> count = ParseSmCount(text.substr(slash + 1));
  if (!count) return BadSmCount(text, arch);
  return Target{std::string(arch), *count};
}

Target TargetOfDevice(int compute_major, int compute_minor, int sm_count) {
  const bool is_hopper = compute_major == 9 && compute_minor == 0;
  return Target{fmt::format("sm_{}{}{}", compute_major, compute_minor,
                            is_hopper ? "a" : ""),
                sm_count};
}

std::span<const KnownDevice> KnownDevices() { return kDevices; }

const KnownDevice* FindKnownDevice(const Target& target) {
  for (const KnownDevice& device : kDevices) {
    if (target.arch == device.arch && target.sm_count == device.sm_count) {
      return &device;
    }
  }
  return nullptr;
}

}  // namespace kiln
