#include "client/cli/validators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

namespace kiln::cli {
namespace {

// Whether `parse`, strtoll or strtoull, can say the number of `text`. CLI11
// takes the nearest one that it can.
template <typename Parse>
bool IsInRange(const std::string& text, Parse parse) {
  errno = 0;
  parse(text.c_str(), nullptr, 0);
  return errno != ERANGE;
}

// Turns `text` into bytes if it is a size. CLI11 throws at unknown units, and
// cuts them off first.
bool ToBytes(std::string& text) {
  std::string bytes = text;
  try {
    if (!NotNegative()(bytes).empty()) return false;
    if (!CLI::AsSizeValue(false)(bytes).empty()) return false;
  } catch (const CLI::ValidationError&) {
    return false;
  }
  if (!IsInRange(bytes, std::strtoll)) return false;
  text = bytes;
  return true;
}

}  // namespace

CLI::Validator NotNegative() {
  const auto check = [](std::string& text) {
    if (!text.empty() && text[0] == '-') {
      return fmt::format("{} is negative", text);
    }
    if (IsInRange(text, std::strtoull)) return std::string();
    return fmt::format("{} is too large (allowed: at most {})", text,
                       std::numeric_limits<uint64_t>::max());
  };
  return CLI::Validator(check, "");
}

CLI::Validator SizeInBytes() {
  const auto convert = [](std::string& text) {
    if (ToBytes(text)) return std::string();
    return fmt::format("\"{}\" is not a size such as 10GiB or 512MiB", text);
  };
  return CLI::Validator(convert, "SIZE");
}

CLI::Validator NotEmpty() {
  const auto check = [](std::string& text) {
    return std::string(text.empty() ? "nothing is given" : "");
  };
  return CLI::Validator(check, "");
}

CLI::Validator PlainText() {
  const auto check = [](std::string& text) {
    const auto other = std::find_if(text.begin(), text.end(),
                                    [](char c) { return c < ' ' || c > '~'; });
    if (other == text.end()) return std::string();
    return fmt::format("byte {} is not printable ASCII (got 0x{:02x})",
                       other - text.begin(), static_cast<uint8_t>(*other));
  };
  return CLI::Validator(check, "");
}

CLI::Validator SecondsBetween(double least, double most) {
  const auto check = [least, most](std::string& text) {
    double seconds = 0;
    const bool is_number = CLI::detail::lexical_cast(text, seconds);
    if (is_number && seconds >= least && seconds <= most) return std::string();
    return fmt::format("{} is not in range {} to {}", text, least, most);
  };
  return CLI::Validator(check, fmt::format("{} to {}", least, most));
}

}  // namespace kiln::cli
