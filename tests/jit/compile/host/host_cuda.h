// Just enough of CUDA for a C++ compiler to build generated units as ordinary
// functions that are called once for each thread of a grid.
#ifndef KILN_TESTS_JIT_COMPILE_HOST_HOST_CUDA_H_
#define KILN_TESTS_JIT_COMPILE_HOST_HOST_CUDA_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "host_block.h"

#define __device__
#define __global__
#define __shared__ static  // blocks run one after another
#define __launch_bounds__(...)
#define __align__(...)

struct HostDim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline HostDim3 threadIdx, blockIdx, blockDim, gridDim;
inline HostBlock host_block;  // that runs

// Of the thread that calls it: others run before it goes on.
inline void HostYield() {
  host_block.Yield();
  threadIdx = {host_block.current(), 0, 0};
}

struct HostBarrier {
  void Wait() {
    const unsigned before = phase;
    if (++arrived == threads) {
      arrived = 0;
      ++phase;
    }
    while (phase == before) HostYield();
  }

  uint32_t threads = 0;
  uint32_t arrived = 0;
  unsigned phase = 0;
};
inline HostBarrier block_barrier;
inline std::vector<HostBarrier> warp_barriers;

inline float lane_values[1024];  // what threads of a warp give each other

namespace kiln {
alignas(128) inline unsigned char ring[227 * 1024];  // dynamic shared memory
}  // namespace kiln

// `clock` is that of the C library, which counts on as well.
inline void __nanosleep(unsigned) {}

inline void __syncthreads() { block_barrier.Wait(); }
inline void __syncwarp() { warp_barriers[threadIdx.x / 32].Wait(); }
// All threads of the warp must call it.
inline float __shfl_xor_sync(unsigned, float value, int mask) {
  lane_values[threadIdx.x] = value;
  __syncwarp();
  const float other = lane_values[threadIdx.x ^ mask];
  __syncwarp();
  return other;
}
inline float __shfl_down_sync(unsigned, float value, int distance) {
  lane_values[threadIdx.x] = value;
  __syncwarp();
  const bool is_inside = threadIdx.x % 32 + distance < 32;
  const float other = lane_values[threadIdx.x + (is_inside ? distance : 0)];
  __syncwarp();
  return other;
}
inline float __shfl_sync(unsigned, float value, int source, int width) {
  lane_values[threadIdx.x] = value;
  __syncwarp();
  const float other = lane_values[threadIdx.x / width * width + source];
  __syncwarp();
  return other;
}
inline bool __any_sync(unsigned, bool value) {
  lane_values[threadIdx.x] = value ? 1.0f : 0.0f;
  __syncwarp();
  const unsigned first = threadIdx.x / 32 * 32;
  const unsigned end = std::min(first + 32, blockDim.x);
  const bool any = std::any_of(lane_values + first, lane_values + end,
                               [](float lane) { return lane != 0.0f; });
  __syncwarp();
  return any;
}
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __saturatef(float x) { return x > 0 ? std::fmin(x, 1.0f) : 0.0f; }
// Rounded down. The sum is exact in double wherever the kernels use it.
inline float __fmaf_rd(float a, float b, float c) {
  const double exact = double{a} * b + c;
  const float rounded = static_cast<float>(exact);
  return rounded > exact ? std::nextafter(rounded, -HUGE_VALF) : rounded;
}

template <typename To, typename From>
To HostBitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}
inline float __int_as_float(int bits) { return HostBitCast<float>(bits); }
inline float __uint_as_float(unsigned bits) { return HostBitCast<float>(bits); }
inline unsigned __float_as_uint(float x) { return HostBitCast<unsigned>(x); }

template <typename A, typename B>
std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
template <typename A, typename B>
std::common_type_t<A, B> max(A a, B b) {
  return a < b ? b : a;
}

// `args` points to the arguments, as cuLaunchKernel takes them.
template <typename... Parameters, size_t... kIndices>
void HostCall(void (*kernel)(Parameters...), void* const* args,
              std::index_sequence<kIndices...>) {
  kernel(*static_cast<std::remove_cv_t<Parameters>*>(args[kIndices])...);
}

// Runs `body` as each thread of a block; they may meet at barriers.
inline void HostRunBlock(uint32_t threads, const std::function<void()>& body) {
  block_barrier = {threads};
  warp_barriers.clear();
  for (uint32_t thread = 0; thread < threads; thread += 32) {
    warp_barriers.push_back({std::min<uint32_t>(32, threads - thread)});
  }
  host_block.Run(threads, [&](uint32_t thread) {
    threadIdx = {thread, 0, 0};
    body();
  });
}

// Runs a grid of `kernel`. Threads of a block run one after another, or, where
// they meet at barriers, in turns.
template <typename... Parameters>
void HostLaunch(void (*kernel)(Parameters...), void* const* args,
                const uint32_t* grid, uint32_t threads, bool has_barriers) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {threads, 1, 1};
  const auto call = [&] {
    HostCall(kernel, args, std::index_sequence_for<Parameters...>());
  };
  for (uint32_t y = 0; y < grid[1]; ++y) {
    for (uint32_t x = 0; x < grid[0]; ++x) {
      blockIdx = {x, y, 0};
      if (has_barriers) {
        HostRunBlock(threads, call);
        continue;
      }
      for (uint32_t thread = 0; thread < threads; ++thread) {
        threadIdx = {thread, 0, 0};
        call();
      }
    }
  }
}

#endif  // KILN_TESTS_JIT_COMPILE_HOST_HOST_CUDA_H_
