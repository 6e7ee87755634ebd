#ifndef KILN_TESTS_JIT_COMPILE_HOST_CASES_H_
#define KILN_TESTS_JIT_COMPILE_HOST_CASES_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "jit/plan/canonical.h"
#include "tests/shape_sets.h"

namespace kiln {

// Plans that kernels built by the C++ compiler run, to be compared with the
// reference.
struct HostCase {
  NamedPlan named;
  Plan plan;
  CanonicalPlan canonical;
};

// Those of the shape sets whose tensors are small.
std::vector<HostCase> SmallCases();

std::vector<HostCase> CasesOf(std::span<const char* const> texts);

// Random plans, of those that `is_wanted` wants; null: of all.
std::vector<HostCase> RandomCases(
    uint64_t seed, size_t count,
    const std::function<bool(const HostCase&)>& is_wanted = nullptr);

// One run of a plan on the same random inputs: by kernels in storage types, and
// by the reference in double.
struct HostRun {
  std::vector<std::vector<char>> buffers;     // the slots
  std::vector<std::vector<double>> expected;  // of each output
};

// Runs the kernels on the canonical plan's inputs and outputs.
using HostRunner = std::function<void(std::span<void* const> slots)>;

// `one_in`: every how many elements is an infinity, a NaN or a zero; 0 for
// none.
HostRun RunCase(const HostCase& test, int one_in, const HostRunner& runner);

// Share of elements of the worst output that are off by more than `factor`
// times what their type and f32 arithmetic allow; the first is printed.
double WrongShare(const HostCase& test, const HostRun& run, double factor);

}  // namespace kiln

#endif  // KILN_TESTS_JIT_COMPILE_HOST_CASES_H_
