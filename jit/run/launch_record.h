#ifndef KILN_JIT_RUN_LAUNCH_RECORD_H_
#define KILN_JIT_RUN_LAUNCH_RECORD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "jit/artifact/artifact.h"

namespace kiln {

// Checks that the launch record of `artifact` refers only to what it declares:
// modules, entries and slots by index; workspace, prepared area and slots by
// offsets inside them; prepare steps read parameters alone; the last variant
// requires nothing. What passes cannot make Launch pass an address outside the
// memory that the caller gave; what a kernel does with it is the compiler's
// promise.
//
// Errors: INVALID_ARGUMENT with the path of the offending field.
absl::Status CheckLaunchRecord(const Artifact& artifact);

// Bytes that `arg` occupies as a kernel parameter: 8 for addresses, 128 for a
// tensor map, or the constant's size.
int64_t ParameterBytes(const Arg& arg);

// Whether [offset, offset + size) lies inside [0, limit), for any values.
bool InRange(int64_t offset, int64_t size, int64_t limit);

}  // namespace kiln

#endif  // KILN_JIT_RUN_LAUNCH_RECORD_H_
