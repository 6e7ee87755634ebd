#ifndef KILN_JIT_PLAN_REFERENCE_WORKERS_H_
#define KILN_JIT_PLAN_REFERENCE_WORKERS_H_

#include <cstdint>
#include <functional>

namespace kiln {

// Splits loops of the reference evaluator over the cores of the machine.
// Stateless between calls, so one object serves a whole plan.
class ReferenceWorkers {
 public:
  // `cancelled` may be empty; it is asked by the thread that calls Run only.
  explicit ReferenceWorkers(const std::function<bool()>& cancelled)
      : cancelled_(cancelled) {}

  // Calls `body(begin, end)` on ranges of at most `grain` that make up
  // [0, count), concurrently and in any order, the last call returned before
  // Run does. False if it was cancelled, with any part of the ranges done.
  bool Run(int64_t count, int64_t grain,
           const std::function<void(int64_t, int64_t)>& body) const;

 private:
  const std::function<bool()>& cancelled_;
};

}  // namespace kiln

#endif  // KILN_JIT_PLAN_REFERENCE_WORKERS_H_
