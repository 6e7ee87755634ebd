#include "client/cli/arguments.h"

#include <utility>

namespace kiln::cli {
namespace {

constexpr char kMark = '\0';

}  // namespace

std::vector<std::string> MarkedArguments(int argc, char** argv) {
  std::vector<std::string> marked;
  for (int i = argc - 1; i > 0; --i) {
    marked.emplace_back(argv[i]);
    if (marked.back().ends_with(']')) marked.back() += kMark;
  }
  return marked;
}

void UnmarkValues(CLI::App& app) {
  const CLI::Validator unmark(
      [](std::string& value) {
        value = Unmarked(std::move(value));
        return std::string();
      },
      "");
  for (CLI::Option* option : app.get_options()) option->transform(unmark);
  for (CLI::App* command : app.get_subcommands({})) UnmarkValues(*command);
}

std::string Unmarked(std::string text) {
  if (text.ends_with(kMark)) text.pop_back();
  return text;
}

}  // namespace kiln::cli
