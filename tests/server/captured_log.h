#ifndef KILN_TESTS_SERVER_CAPTURED_LOG_H_
#define KILN_TESTS_SERVER_CAPTURED_LOG_H_

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace kiln {

// What the process logs while this lives. What logs on other threads must have
// stopped before it is made, read or destroyed.
class CapturedLog {
 public:
  CapturedLog() {
    auto logger = std::make_shared<spdlog::logger>(
        "captured",
        std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_, true));
    spdlog::set_default_logger(std::move(logger));
  }
  ~CapturedLog() { spdlog::set_default_logger(before_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::string text() const { return stream_.str(); }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream stream_;
};

}  // namespace kiln

#endif  // KILN_TESTS_SERVER_CAPTURED_LOG_H_
