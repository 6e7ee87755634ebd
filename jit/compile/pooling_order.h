#ifndef KILN_JIT_COMPILE_POOLING_ORDER_H_
#define KILN_JIT_COMPILE_POOLING_ORDER_H_

#include <cstdint>

#include "jit/artifact/target.h"
#include "jit/compile/schedule.h"

namespace kiln {

// Where a pooling is that may be in front of a norm (commute_pooling.h).
enum class PoolingOrder : uint8_t {
  kWhereFaster,
  kInFront,  // if a convolution's kernel does both
  kBehind,
};

// Whether each pooling that was moved is part of a convolution: no other kernel
// does it.
bool PoolsEarlyInPlace(const Schedule& schedule);

// Whether a pooling that was moved has windows that overlap, of which tiles
// that share some both compute these: behind the norm it may take less time.
bool PoolsWhatTilesShare(const LoweredPlan& plan);

// Whether `behind`, of the same plan with nothing moved, takes so much less
// time that the models are sure of it.
bool IsFasterBehind(const Schedule& in_front, const Schedule& behind,
                    const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_POOLING_ORDER_H_
