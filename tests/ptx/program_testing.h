#ifndef KILN_TESTS_PTX_PROGRAM_TESTING_H_
#define KILN_TESTS_PTX_PROGRAM_TESTING_H_

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/program.h"

namespace kiln::ptx {

struct Outcome {
  absl::Status status;
  std::vector<uint32_t> words;
};

// Runs an entry with this body and two pointers: to `input`, which must not be
// written, and to the outcome's words. The body finds them in %in and %out, the
// thread in %tid.x as %t, the addresses of the thread's own words in %own_in
// and %own_out, 0 in %r0, and shared memory at `dynamic`; registers are %p, %r,
// %f and %rd with numbers. It begins at line 15. A launch that overlaps the one
// before it runs behind one that is the same and does not.
Outcome RunBody(const std::string& body, const std::vector<uint32_t>& input,
                size_t num_outputs, Launch launch = {});

// One block.
Launch Threads(uint32_t threads, int64_t shared_bytes = 0);

inline uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_PROGRAM_TESTING_H_
