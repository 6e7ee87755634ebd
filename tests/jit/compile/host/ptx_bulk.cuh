// What the kernels of kernel_sources/ptx_bulk.cuh do, for threads of the host:
// a bulk copy is done when it returns, and a barrier counts its bytes.
#ifndef KILN_KERNEL_SOURCES_PTX_BULK_CUH_
#define KILN_KERNEL_SOURCES_PTX_BULK_CUH_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <ctime>
#include <thread>

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
  std::atomic_ref<unsigned long long> word(barrier->state);
  unsigned long long old = word.load();
  BarrierState state;
  do {
    std::memcpy(&state, &old, sizeof(state));
    change(&state);
    if (state.missing == 0 && state.bytes == 0) {
      ++state.phase;
      state.missing = state.expected;
    }
  } while (
      !word.compare_exchange_weak(old, HostBitCast<unsigned long long>(state)));
  syscall(SYS_futex, &barrier->state, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
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

// Looks again every 10 ms, in case nobody wakes it: waiting for std::atomic_ref
// has been seen to last for ever.
inline void Wait(Barrier* barrier, unsigned parity) {
  const std::atomic_ref<unsigned long long> word(barrier->state);
  const timespec most{0, 10'000'000};
  for (;;) {
    const unsigned long long seen = word.load();
    if (HostBitCast<BarrierState>(seen).phase % 2 != parity) return;
    // Of the word, what says the phase.
    syscall(SYS_futex, &barrier->state, FUTEX_WAIT_PRIVATE,
            static_cast<unsigned>(seen), &most, nullptr, 0);
  }
}

inline void BulkLoad(void* shared, const void* global, unsigned bytes,
                     Barrier* barrier) {
  std::memcpy(shared, global, bytes);
  Update(barrier, [bytes](BarrierState* state) { state->bytes -= bytes; });
}

inline void StoreRelaxed(unsigned long long* global, unsigned long long value) {
  std::atomic_ref<unsigned long long> word(*global);
  word.store(value);
}

inline unsigned long long LoadRelaxed(const unsigned long long* global) {
  std::atomic_ref<unsigned long long> word(
      *const_cast<unsigned long long*>(global));
  const unsigned long long value = word.load();
  if (value == 0) std::this_thread::yield();
  return value;
}

inline void LoadRelaxedIf(bool condition, const unsigned long long* global,
                          unsigned long long* value) {
  if (condition) *value = LoadRelaxed(global);
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_PTX_BULK_CUH_
