#include "jit/plan/reference_workers.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace kiln {
namespace {

// Threads beyond the caller for `ranges` ranges of work.
int64_t HelpersFor(int64_t ranges) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return std::min(cores, ranges) - 1;
}

}  // namespace

bool ReferenceWorkers::Run(
    int64_t count, int64_t grain,
    const std::function<void(int64_t, int64_t)>& body) const {
  std::atomic<int64_t> next = 0;
  std::atomic<bool> stop = false;
  const auto run_one = [&] {
    const int64_t begin = next.fetch_add(grain);
    if (begin >= count || stop.load()) return false;
    body(begin, std::min(begin + grain, count));
    return true;
  };

  std::vector<std::thread> helpers;
  for (int64_t i = HelpersFor((count + grain - 1) / grain); i > 0; --i) {
    try {
      helpers.emplace_back([&] {
        while (run_one()) {
        }
      });
    } catch (const std::system_error&) {
      break;  // no more threads to be had: those there are do the work
    }
  }
  do {
    if (cancelled_ && cancelled_()) stop = true;
  } while (run_one());
  for (std::thread& helper : helpers) helper.join();
  return !stop;
}

}  // namespace kiln
