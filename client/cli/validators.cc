#include "client/cli/validators.h"

#include <fmt/format.h>

#include <string>

namespace kiln::cli {

CLI::Validator NotNegative() {
  const auto check = [](std::string& text) {
    if (text.empty() || text[0] != '-') return std::string();
    return fmt::format("{} is negative", text);
  };
  return CLI::Validator(check, "");
}

CLI::Validator SizeInBytes() {
  const auto convert = [](std::string& text) {
    const std::string given = text;
    std::string problem = NotNegative()(text);
    if (problem.empty()) problem = CLI::AsSizeValue(false)(text);
    if (problem.empty()) return problem;
    return fmt::format("\"{}\" is not a size such as 10GiB or 512MiB", given);
  };
  return CLI::Validator(convert, "SIZE");
}

}  // namespace kiln::cli
