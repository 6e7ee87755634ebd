#ifndef KILN_TESTS_JIT_COMPILE_HOST_KERNELS_H_
#define KILN_TESTS_JIT_COMPILE_HOST_KERNELS_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule.h"

namespace kiln {

// The kernels of one plan, built by the C++ compiler instead of NVRTC: the
// same generated units and kernel sources, over host/host_cuda.h. For finding
// wrong indices and schedules on machines without a GPU.
struct HostProgram {
  Schedule schedule;
  std::vector<KernelSpec> specs;
  std::vector<std::string> symbols;  // of launch functions, one per entry
};

// A shared library with the programs of many plans. A resource.
class HostKernels {
 public:
  // Builds and opens the library; aborts with the compiler's output if the
  // units are no valid C++.
  explicit HostKernels(std::vector<Schedule> schedules);
  ~HostKernels();
  HostKernels(const HostKernels&) = delete;
  HostKernels& operator=(const HostKernels&) = delete;

  // Runs program number `program`. `slots` are the artifact's; the workspace
  // is filled with NaNs first.
  void Run(size_t program, std::span<void* const> slots) const;

 private:
  std::vector<HostProgram> programs_;
  void* library_ = nullptr;
};

}  // namespace kiln

#endif  // KILN_TESTS_JIT_COMPILE_HOST_KERNELS_H_
