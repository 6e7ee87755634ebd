#ifndef KILN_TESTS_SERVER_WAITING_H_
#define KILN_TESTS_SERVER_WAITING_H_

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"

namespace kiln {

// Longer than anything that works takes on a busy machine.
inline constexpr std::chrono::seconds kPatience{20};

// A callback and the future of what it is called with. A second call aborts
// the test: promises are kept once.
template <typename T>
class Answer {
 public:
  std::function<void(absl::StatusOr<T>)> callback() {
    return [promise = promise_](absl::StatusOr<T> value) {
      promise->set_value(std::move(value));
    };
  }

  absl::StatusOr<T> Get() {
    if (future_.wait_for(kPatience) != std::future_status::ready) {
      return absl::UnknownError("There is no answer.");
    }
    return future_.get();
  }

  bool IsThere() const {
    return future_.wait_for(std::chrono::seconds(0)) ==
           std::future_status::ready;
  }

 private:
  std::shared_ptr<std::promise<absl::StatusOr<T>>> promise_ =
      std::make_shared<std::promise<absl::StatusOr<T>>>();
  std::future<absl::StatusOr<T>> future_ = promise_->get_future();
};

// True once `condition` holds, false if it does not within kPatience.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace kiln

#endif  // KILN_TESTS_SERVER_WAITING_H_
