// Values of which the compiler knows nothing, for the sake of the time that it
// takes: what it cannot see through it neither copies code for nor rewrites.
// They cost no instructions.
//
//   number = kiln::Opaque(row * Spec::kChunks + k);
#ifndef KILN_KERNEL_SOURCES_OPAQUE_CUH_
#define KILN_KERNEL_SOURCES_OPAQUE_CUH_

namespace kiln {

// The same value, unrelated to what it was computed from. Where that was a
// loop's variable, the compiler looks for sums that could run along instead of
// what is computed from it, which takes long.
__device__ inline int Opaque(int value) {
  asm("" : "+r"(value));
  return value;
}

__device__ inline unsigned Opaque(unsigned value) {
  asm("" : "+r"(value));
  return value;
}

__device__ inline long long Opaque(long long value) {
  asm("" : "+l"(value));
  return value;
}

// The same condition, not known to be the same every time: there are no copies
// of a loop, one for each case.
__device__ inline bool Opaque(bool condition) {
  int value = condition;
  asm volatile("" : "+r"(value));
  return value != 0;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_OPAQUE_CUH_
