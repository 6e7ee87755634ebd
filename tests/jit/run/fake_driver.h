#ifndef KILN_TESTS_JIT_RUN_FAKE_DRIVER_H_
#define KILN_TESTS_JIT_RUN_FAKE_DRIVER_H_

#include <string>
#include <vector>

#include "jit/run/driver_table.h"

namespace kiln {

// libfakecuda.so: a CUDA driver of one device without a GPU. Memory is host
// memory; launches only write a line to a log. A cubin is text, a line
// "kernel SYMBOL BYTES..." for each kernel with the sizes of its parameters.
//
// Log lines:
//   memset ADDRESS BYTES
//   launch SYMBOL grid X,Y,Z block X,Y,Z [cooperative] [cluster X,Y,Z]
//       [overlapping] shared N args HEX...
//                                    (bytes in memory order; maps spelled out)
// Control functions of the library, all through this class. Not thread-safe.
class FakeDriver {
 public:
  // Loads the library (once per process) and forgets all earlier state.
  FakeDriver();

  const DriverTable& table() const { return table_; }

  // Device properties and answers: "sm_count" (132), "major" (9), "minor" (0),
  // "shared_optin" (232448), "cooperative" (1), "cluster" (1), "blocks_per_sm"
  // (1), "active_clusters" (66), "capturing" (0), "memory" (bytes, 80 GiB),
  // "driver" (13000).
  void Set(const std::string& property, long long value);
  // The next call of `function` ("cuLaunchKernelEx") gives `result`; a fatal
  // one poisons every later call too.
  void Fail(const std::string& function, driver::Result result);
  // Lines since the last call.
  std::vector<std::string> TakeLog();
  // Makes memory of `bytes` in "another process"; returns its handle.
  std::string ForeignHandle(unsigned char id, long long bytes);

  // Objects that are alive: "libraries", "allocations", "mappings",
  // "streams", "events", "contexts".
  long long Count(const std::string& kind) const;

 private:
  void* library_;
  DriverTable table_;
};

}  // namespace kiln

#endif  // KILN_TESTS_JIT_RUN_FAKE_DRIVER_H_
