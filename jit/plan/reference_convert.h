#ifndef KILN_JIT_PLAN_REFERENCE_CONVERT_H_
#define KILN_JIT_PLAN_REFERENCE_CONVERT_H_

#include <cstdint>

#include "jit/plan/data_type.h"

namespace kiln {

// Conversions between storage types and double. To double is exact. From
// double rounds once, to the nearest value, ties to even: beyond the largest
// finite value becomes infinity, below the smallest becomes a denormal or a
// zero of the same sign. A NaN becomes the type's quiet NaN.

// The nearest value of `type`, as a double.
double RoundTo(DataType type, double value);

// Writes the `count` contiguous elements of `from`, of type `type`, to `to`.
void ElementsToDouble(DataType type, const void* from, int64_t count,
                      double* to);

// Rounds the `count` doubles of `from` to elements of type `type` in `to`.
void ElementsFromDouble(DataType type, const double* from, int64_t count,
                        void* to);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_REFERENCE_CONVERT_H_
