#include "client/cli/prewarm_progress.h"

#include <fmt/format.h>

#include <cstdio>

namespace kiln::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{10};

std::string Bar(const PrewarmCounts& counts) {
  const int64_t filled =
      counts.total == 0 ? kBarWidth : kBarWidth * counts.done() / counts.total;
  return std::string(filled, '#') + std::string(kBarWidth - filled, '.');
}

}  // namespace

std::string ProgressText(const PrewarmCounts& counts, double elapsed_s) {
  const int64_t worked = counts.done() - counts.skipped;
  const double rate = elapsed_s > 0 ? worked / elapsed_s : 0;
  std::string text =
      fmt::format("{}/{}  {} compiled, {} cached, {} failed", counts.done(),
                  counts.total, counts.compiled, counts.cached, counts.failed);
  if (counts.skipped > 0) text += fmt::format(", {} skipped", counts.skipped);
  if (rate == 0) return text;
  const auto eta_s =
      static_cast<int64_t>((counts.total - counts.done()) / rate);
  return text +
         fmt::format("  {:.1f}/s  ETA {}:{:02}", rate, eta_s / 60, eta_s % 60);
}

PrewarmProgress::PrewarmProgress(const Terminal& terminal, int64_t total)
    : terminal_(terminal), last_shown_(start_) {
  counts_.total = total;
}

void PrewarmProgress::Add(Outcome outcome) {
  const std::lock_guard<std::mutex> lock(mutex_);
  switch (outcome) {
    case Outcome::kCompiled:
      ++counts_.compiled;
      break;
    case Outcome::kCached:
      ++counts_.cached;
      break;
    case Outcome::kSkipped:
      ++counts_.skipped;
      break;
    case Outcome::kFailed:
      ++counts_.failed;
      break;
  }
  Show();
}

void PrewarmProgress::Show() {
  const bool draws = terminal_.draws_progress();
  const Clock::time_point now = Clock::now();
  const auto interval = draws ? Clock::duration(kRedraw) : kPlainLine;
  if (now - last_shown_ < interval) return;
  last_shown_ = now;
  const std::string text = ProgressText(counts_, elapsed_s());
  if (draws) {
    std::fputs(fmt::format("\r\033[K[{}] {}", Bar(counts_), text).c_str(),
               stderr);
  } else {
    terminal_.Note(text);
  }
}

void PrewarmProgress::Finish() {
  if (terminal_.draws_progress()) std::fputs("\r\033[K", stderr);
}

PrewarmCounts PrewarmProgress::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

double PrewarmProgress::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

}  // namespace kiln::cli
