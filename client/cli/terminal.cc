#include "client/cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "client/status_converter.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

// Standard output may be a closed pipe ("kiln ... | head"), which is no error.
void Write(std::FILE* file, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace

Terminal::Terminal(const Options& options) : options_(options) {}

bool Terminal::draws_progress() const {
  return !options_.quiet && !options_.json && isatty(STDERR_FILENO) == 1;
}

bool Terminal::Colored(int fd) const {
  if (options_.color == Color::kAlways) return true;
  if (options_.color == Color::kNever || options_.no_color) return false;
  return isatty(fd) == 1;
}

void Terminal::Print(std::string_view text) const {
  if (!options_.json) Write(stdout, text);
}

void Terminal::PrintJson(std::string_view schema, const Json& body) const {
  if (!options_.json) return;
  Json document = {{"schema", schema}};
  document.update(body);
  // Messages may quote bytes that are not UTF-8.
  Write(stdout,
        document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void Terminal::Note(std::string_view text) const {
  if (!options_.quiet) Write(stderr, fmt::format("{}\n", text));
}

void Terminal::Failed(std::string_view text) const {
  Write(stderr, fmt::format("failed  {}\n", text));
}

void Terminal::Error(const absl::Status& status) const {
  const ErrorDetail detail = DetailOf(status);
  std::string text =
      fmt::format("kiln: {} {}\n",
                  Colored(STDERR_FILENO) ? "\033[31merror:\033[0m" : "error:",
                  Message(status));
  if (!detail.hint.empty()) text += fmt::format("  hint: {}\n", detail.hint);
  if (!detail.compile_log.empty()) {
    text += fmt::format("  compiler log:\n{}\n", detail.compile_log);
  }
  Write(stderr, text);
  PrintJson("kiln.error/1", ErrorJson(status));
}

std::string Terminal::Styled(Style style, std::string_view text) const {
  if (!Colored(STDOUT_FILENO)) return std::string(text);
  static constexpr int kCodes[] = {32, 31, 33, 2};
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<int>(style)],
                     text);
}

Json ErrorJson(const absl::Status& status) {
  const ErrorDetail detail = DetailOf(status);
  Json json = {{"code", absl::StatusCodeToString(status.code())},
               {"message", Message(status)}};
  const auto add = [&json](const char* name, const std::string& value) {
    if (!value.empty()) json[name] = value;
  };
  add("field", detail.field);
  add("value", detail.value);
  add("limit", detail.limit);
  add("hint", detail.hint);
  add("compile_log", detail.compile_log);
  add("generated_source", detail.generated_source);
  add("request_id", client::RequestIdOf(status));
  return json;
}

}  // namespace kiln::cli
