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

// Runs kernels on the canonical plan's inputs and outputs.
using HostRunner = std::function<void(std::span<void* const> slots)>;

// Records a test failure where, on random inputs, more than `max_wrong_share`
// of an output's elements are off by more than `factor` times what their type
// and f32 arithmetic allow; the first is printed. Once for each of `specials`:
// every how many input elements is an infinity, a NaN or a zero; 0 for none.
void CheckCase(const HostCase& test, double factor, double max_wrong_share,
               const std::vector<int>& specials, const HostRunner& runner);

}  // namespace kiln

#endif  // KILN_TESTS_JIT_COMPILE_HOST_CASES_H_
