#include "server/logging.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/status/statusor.h"
#include "proto/file_descriptor.h"
#include "server/request_prefix.h"

namespace kiln {
namespace {

constexpr size_t kIdDigits = 16;
constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
constexpr char kJsonPattern[] =
    R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%*})";

std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

// "request":"...","message":"..." of a line.
class JsonFields : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    std::string_view text(message.payload.data(), message.payload.size());
    std::string fields;
    if (text.substr(0, kRequestPrefixStart.size()) == kRequestPrefixStart &&
        text.size() > kRequestPrefixStart.size() + kIdDigits) {
      text.remove_prefix(kRequestPrefixStart.size());
      fields =
          fmt::format("\"request\":{},", Quoted(text.substr(0, kIdDigits)));
      text.remove_prefix(kIdDigits + 1);
    }
    fields += fmt::format("\"message\":{}", Quoted(text));
    out.append(fields.data(), fields.data() + fields.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JsonFields>();
  }
};

absl::StatusOr<spdlog::sink_ptr> MakeSink(const std::string& path) {
  if (path.empty()) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  // spdlog throws where it cannot open a file, so ask first.
  const FileDescriptor probe(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!probe.valid()) {
    return absl::FailedPreconditionError(
        fmt::format("The log file {} cannot be opened: {}", path,
                    std::generic_category().message(errno)));
  }
  return std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
}

std::unique_ptr<spdlog::formatter> MakeFormatter(LogFormat format) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (format == LogFormat::kJson) {
    formatter->add_flag<JsonFields>('*');
    formatter->set_pattern(kJsonPattern);
  } else {
    formatter->set_pattern(kTextPattern);
  }
  return formatter;
}

}  // namespace

absl::Status StartLogging(const Options& options) {
  absl::StatusOr<spdlog::sink_ptr> sink = MakeSink(options.log_file);
  if (!sink.ok()) return sink.status();
  auto logger = std::make_shared<spdlog::logger>("kilnd", *sink);
  logger->set_level(spdlog::level::from_str(options.log_level));
  logger->set_formatter(MakeFormatter(options.log_format));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace kiln
