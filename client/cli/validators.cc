#include "client/cli/validators.h"

#include <fmt/format.h>

#include <string>

namespace kiln::cli {
namespace {

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
  text = bytes;
  return true;
}

}  // namespace

CLI::Validator NotNegative() {
  const auto check = [](std::string& text) {
    if (text.empty() || text[0] != '-') return std::string();
    return fmt::format("{} is negative", text);
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

}  // namespace kiln::cli
