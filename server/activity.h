#ifndef KILN_SERVER_ACTIVITY_H_
#define KILN_SERVER_ACTIVITY_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace kiln {

// Counts calls under way, so that the daemon can drain and notice that nobody
// needs it. Thread-safe.
class Activity {
 public:
  Activity() { Touch(); }

  // False once draining: the call must be answered UNAVAILABLE. End must
  // follow in either case.
  bool Begin() {
    ++calls_;
    return !draining_;
  }
  void End() {
    Touch();
    --calls_;
  }

  void StartDrain() { draining_ = true; }
  bool draining() const { return draining_; }
  int calls() const { return calls_; }

  // Restarts the idle time.
  void Touch() { last_active_ = Now(); }
  std::chrono::milliseconds idle() const {
    return std::chrono::milliseconds(Now() - last_active_);
  }

 private:
  static int64_t Now() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  std::atomic<int> calls_{0};
  std::atomic<bool> draining_{false};
  std::atomic<int64_t> last_active_{0};
};

}  // namespace kiln

#endif  // KILN_SERVER_ACTIVITY_H_
