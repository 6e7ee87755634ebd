#ifndef KILN_JIT_RUN_KERNEL_ARGUMENTS_H_
#define KILN_JIT_RUN_KERNEL_ARGUMENTS_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "jit/artifact/artifact.h"
#include "jit/run/driver_table.h"

namespace kiln {

// The values of one step's kernel parameters. Reused from step to step to keep
// its memory.
class KernelArguments {
 public:
  // Addresses that arguments are relative to.
  struct Bases {
    std::span<const driver::DevicePtr> slots;
    driver::DevicePtr workspace = 0;
    driver::DevicePtr prepared = 0;
  };

  // `step` must outlive the next call of get(). Errors: those of
  // cuTensorMapEncodeTiled.
  absl::Status Fill(const DriverTable& driver, const Step& step,
                    const Bases& bases);

  // One pointer per parameter, as cuLaunchKernelEx takes them.
  void** get() { return pointers_.data(); }

 private:
  std::vector<driver::DevicePtr> addresses_;
  std::vector<driver::TensorMap> maps_;
  std::vector<void*> pointers_;
};

}  // namespace kiln

#endif  // KILN_JIT_RUN_KERNEL_ARGUMENTS_H_
