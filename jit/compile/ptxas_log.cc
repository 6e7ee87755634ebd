#include "jit/compile/ptxas_log.h"

#include <charconv>

#include "fmt/format.h"

namespace kiln {
namespace {

// The number that stands before `unit`: 23 for " registers" in
// "Used 23 registers".
std::optional<int64_t> NumberBefore(std::string_view text,
                                    std::string_view unit) {
  const size_t end = text.find(unit);
  if (end == std::string_view::npos) return std::nullopt;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') {
    --begin;
  }
  int64_t number = 0;
  const auto [rest, error] =
      std::from_chars(text.data() + begin, text.data() + end, number);
  if (error != std::errc() || rest != text.data() + end) return std::nullopt;
  return number;
}

}  // namespace

std::optional<KernelUsage> FindKernelUsage(std::string_view log,
                                           std::string_view symbol) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  const size_t at = log.find(fmt::format("{}{}'", kEntry, symbol));
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view lines = log.substr(at + kEntry.size());
  lines = lines.substr(0, lines.find(kEntry));

  const auto registers = NumberBefore(lines, " registers");
  const auto stack = NumberBefore(lines, " bytes stack frame");
  if (!registers || !stack) return std::nullopt;
  return KernelUsage{static_cast<int>(*registers), *stack,
                     NumberBefore(lines, " bytes smem").value_or(0)};
}

bool IsRefused(std::string_view log) {
  return log.find("ptxas fatal") != std::string_view::npos;
}

}  // namespace kiln
