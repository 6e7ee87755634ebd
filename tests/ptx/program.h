#ifndef KILN_TESTS_PTX_PROGRAM_H_
#define KILN_TESTS_PTX_PROGRAM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/ptx/memory.h"

namespace kiln::ptx {

// One launch of an entry.
struct Launch {
  std::string entry;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {32, 1, 1};
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  int64_t dynamic_shared_bytes = 0;
  std::span<const uint64_t> args;  // one for each parameter
  // Blocks that run at a time; the others follow in order.
  int64_t resident_blocks = 4;
  // Begins before the launch before it has ended: threads that have not waited
  // for that must not read what it writes, write anything, or let the next
  // launch begin; some of each block must wait.
  bool overlaps = false;
  // 0: warps run as far as they can, in order; else they are interrupted at
  // random, which finds more missing barriers.
  uint64_t schedule_seed = 0;
  // Sums of warpgroups' products are rounded as tensor cores do it, which takes
  // longer.
  bool rounds_sums = false;
};

// A PTX module, decoded, and its execution by this processor, for machines
// without a GPU. A resource: it owns the module's global variables.
//
// Threads run until they have to wait for others or poll memory, then others
// run. Memory is consistent, so missing fences are not found. Asynchronous
// copies and products are done as late as may be, so missing waits are, and
// missing barriers between threads often are. Shared memory and registers
// begin as NaNs.
class Program {
 public:
  // Errors: INVALID_ARGUMENT with the line, for text that is no PTX and for
  // instructions that the interpreter does not know.
  static absl::StatusOr<Program> Load(std::string_view text);
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  // Runs a grid on `memory`, to which the module's variables are added.
  //
  // Errors: NOT_FOUND: there is no such entry; INTERNAL: a thread accesses
  // what it must not, or all wait for each other, with the lines of the PTX.
  absl::Status Run(const Launch& launch, GlobalMemory memory) const;

 private:
  struct State;
  explicit Program(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_PROGRAM_H_
