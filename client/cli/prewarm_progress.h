#ifndef KILN_CLIENT_CLI_PREWARM_PROGRESS_H_
#define KILN_CLIENT_CLI_PREWARM_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "client/cli/terminal.h"

namespace kiln::cli {

// Counts of a prewarm run so far.
struct PrewarmCounts {
  int64_t total = 0;
  int64_t compiled = 0;
  int64_t cached = 0;   // were in the cache
  int64_t skipped = 0;  // done by the run that this one resumes
  int64_t failed = 0;

  int64_t done() const { return compiled + cached + skipped + failed; }
};

// "  118/400  110 compiled, 8 cached, 0 failed  12.3/s  ETA 0:23". The rate
// counts what was not skipped.
std::string ProgressText(const PrewarmCounts& counts, double elapsed_s);

// Shows how far a prewarm run is: a bar that is drawn over itself on a
// terminal, else a line every ten seconds. Thread-safe.
class PrewarmProgress {
 public:
  PrewarmProgress(const Terminal& terminal, int64_t total);

  enum class Outcome { kCompiled, kCached, kSkipped, kFailed };
  void Add(Outcome outcome);
  // Erases the bar, so that a message can be printed.
  void Finish();

  PrewarmCounts counts() const;
  double elapsed_s() const;

 private:
  void Show();

  using Clock = std::chrono::steady_clock;
  const Terminal& terminal_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  PrewarmCounts counts_;          // guarded by mutex_
  Clock::time_point last_shown_;  // guarded by mutex_
};

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_PREWARM_PROGRESS_H_
