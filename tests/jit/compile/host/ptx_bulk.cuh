// What the kernels of kernel_sources/ptx_bulk.cuh do, for threads of the host:
// a bulk copy is done when it returns, and a barrier counts its bytes.
#ifndef KILN_KERNEL_SOURCES_PTX_BULK_CUH_
#define KILN_KERNEL_SOURCES_PTX_BULK_CUH_

#include <cstring>

namespace kiln::ptx {

struct alignas(8) Barrier {
  unsigned long long state;
};

// The content of a barrier's word.
struct BarrierState {
  unsigned phase : 8;
  unsigned expected : 12;
  unsigned missing : 12;
  unsigned bytes;
};
static_assert(sizeof(BarrierState) == sizeof(Barrier));

template <typename Change>
void Update(Barrier* barrier, Change change) {
  auto state = HostBitCast<BarrierState>(barrier->state);
  change(&state);
  if (state.missing == 0 && state.bytes == 0) {
    ++state.phase;
    state.missing = state.expected;
  }
  barrier->state = HostBitCast<unsigned long long>(state);
}

inline void InitBarrier(Barrier* barrier, unsigned arrivals) {
  BarrierState state{};
  state.expected = arrivals;
  state.missing = arrivals;
  barrier->state = HostBitCast<unsigned long long>(state);
}

inline void FenceBarrierInit() {}

inline void Arrive(Barrier* barrier) {
  Update(barrier, [](BarrierState* state) { --state->missing; });
}

inline void ArriveExpecting(Barrier* barrier, unsigned bytes) {
  Update(barrier, [bytes](BarrierState* state) {
    --state->missing;
    state->bytes += bytes;
  });
}

inline void Wait(Barrier* barrier, unsigned parity) {
  while (HostBitCast<BarrierState>(barrier->state).phase % 2 == parity) {
    HostYield();
  }
}

inline void BulkLoad(void* shared, const void* global, unsigned bytes,
                     Barrier* barrier) {
  std::memcpy(shared, global, bytes);
  Update(barrier, [bytes](BarrierState* state) { state->bytes -= bytes; });
}

inline void StoreRelaxed(unsigned long long* global, unsigned long long value) {
  *global = value;
}

// Who finds nothing polls.
inline unsigned long long LoadRelaxed(const unsigned long long* global) {
  if (*global == 0) HostYield();
  return *global;
}

inline void LoadRelaxedIf(bool condition, const unsigned long long* global,
                          unsigned long long* value) {
  if (condition) *value = LoadRelaxed(global);
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_PTX_BULK_CUH_
