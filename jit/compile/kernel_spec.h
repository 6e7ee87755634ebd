#ifndef KILN_JIT_COMPILE_KERNEL_SPEC_H_
#define KILN_JIT_COMPILE_KERNEL_SPEC_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "jit/compile/element_code.h"
#include "jit/compile/schedule.h"

namespace kiln {

// kiln::Turn of published_states.cuh before the one that does everything: rows
// of the grids of such launches.
inline constexpr uint32_t kPublishingTurn = 2;
inline constexpr uint32_t kGatheringTurn = 3;

// One __global__ function of a unit, and its launch.
struct EntrySpec {
  std::string symbol;    // "kiln_conv2d"
  std::string function;  // of the template: "kiln::Conv2d"
  int threads = 256;     // of a block; also the launch bound
  std::array<uint32_t, 3> grid = {1, 1, 1};
  // Of launches before that with `grid`, in order.
  std::vector<std::array<uint32_t, 3>> earlier_grids = {};
  std::array<uint32_t, 3> cluster = {1, 1, 1};  // all 1: no cluster launch
  int64_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  int min_blocks = 0;  // on a multiprocessor at once; 0: the compiler's choice
  // Fewer are as right: they only hide less of memory's latency.
  bool may_have_fewer = false;
  // The template waits for the kernels before, not its caller.
  bool awaits_itself = false;
};

// Everything that is specialised in one kernel: the content of the generated
// unit, still as parts. A value. The text pieces are lines of C++.
struct KernelSpec {
  std::vector<std::string> formula;    // the plan's ops, for people
  std::string source_file;             // of the template: "conv2d.cu"
  std::string index;                   // "int" or "long long"
  std::vector<std::string> constants;  // members of Spec
  std::vector<KernelTensor> tensors;   // parameters, in order
  std::vector<std::string> members;    // of Spec, behind Tensors
  bool is_vectorised = false;          // Read and Element are templates: Held
  bool reads_elements = false;         // has Spec::Read
  std::string read_argument;  // third parameter of Spec::Read, or empty
  std::vector<std::string> read_body;
  std::string read_result;       // what Spec::Read returns
  bool has_element = true;       // has Spec::Element
  std::string element_argument;  // third parameter of Spec::Element, or empty
  std::vector<std::string> element_body;
  std::vector<EntrySpec> entries;  // in launch order
  // Launches may begin before those before them have ended.
  bool overlaps = false;
};

// Chooses the constants of one kernel of `schedule`. Total: every schedule of
// a valid plan has a spec.
KernelSpec MakeKernelSpec(const Schedule& schedule, const Kernel& kernel);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_KERNEL_SPEC_H_
