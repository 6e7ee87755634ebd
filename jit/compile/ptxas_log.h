#ifndef KILN_JIT_COMPILE_PTXAS_LOG_H_
#define KILN_JIT_COMPILE_PTXAS_LOG_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

// What ptxas -v says about one kernel.
struct KernelUsage {
  int registers = 0;                // per thread
  int64_t stack_bytes = 0;          // per thread; local memory, spills included
  int64_t static_shared_bytes = 0;  // per block
  friend bool operator==(const KernelUsage&, const KernelUsage&) = default;
};

// Reads the lines of a log about the kernel `symbol`:
//   ptxas info    : Compiling entry function 'kiln_reduce' for 'sm_80'
//   ptxas         .     0 bytes stack frame, 0 bytes spill stores, ...
//   ptxas info    : Used 23 registers, used 1 barriers, 6144 bytes smem, ...
// nullopt if there are none.
std::optional<KernelUsage> FindKernelUsage(std::string_view log,
                                           std::string_view symbol);

// Whether ptxas refuses what the compiler accepts, by its log: a register count
// that does not suit the program, say.
bool IsRefused(std::string_view log);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_PTXAS_LOG_H_
