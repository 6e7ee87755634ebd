#ifndef KILN_TESTS_PTX_LANES_H_
#define KILN_TESTS_PTX_LANES_H_

#include "tests/ptx/machine.h"

namespace kiln::ptx {

// The same as ForLanes, by vectors: no lane reads what another writes.
template <typename Body>
void ForVectors(uint32_t mask, Body body) {
  if (mask != ~0u) return ForLanes(mask, body);
#ifndef __clang__
#pragma GCC ivdep
#endif
  for (int lane = 0; lane < kLanes; ++lane) body(lane);
}

// Handlers that compute a lane's result from the same lane's operands:
// Function has a static Apply.

template <typename To, typename A, typename Function>
void Unary(Warp& warp, const Instruction& i, uint32_t mask) {
  std::byte* const to = Destination(warp, i.operands[0]);
  const std::byte* const a = Source(warp, i.operands[1]);
  ForVectors(mask, [&](int lane) {
    Put<To>(to, lane, Function::Apply(Get<A>(a, lane)));
  });
}

template <typename To, typename A, typename B, typename Function>
void Binary(Warp& warp, const Instruction& i, uint32_t mask) {
  std::byte* const to = Destination(warp, i.operands[0]);
  const std::byte* const a = Source(warp, i.operands[1]);
  const std::byte* const b = Source(warp, i.operands[2]);
  ForVectors(mask, [&](int lane) {
    Put<To>(to, lane, Function::Apply(Get<A>(a, lane), Get<B>(b, lane)));
  });
}

template <typename To, typename A, typename B, typename C, typename Function>
void Ternary(Warp& warp, const Instruction& i, uint32_t mask) {
  std::byte* const to = Destination(warp, i.operands[0]);
  const std::byte* const a = Source(warp, i.operands[1]);
  const std::byte* const b = Source(warp, i.operands[2]);
  const std::byte* const c = Source(warp, i.operands[3]);
  ForVectors(mask, [&](int lane) {
    Put<To>(to, lane,
            Function::Apply(Get<A>(a, lane), Get<B>(b, lane), Get<C>(c, lane)));
  });
}

// The letter of a type's operands.
template <typename T>
constexpr char Letter() {
  return sizeof(T) == 8 ? 'd' : 'w';
}

template <typename T, typename Function>
Operation UnaryOperation() {
  return {Unary<T, T, Function>, std::string(2, Letter<T>())};
}
template <typename T, typename Function>
Operation BinaryOperation() {
  return {Binary<T, T, T, Function>, std::string(3, Letter<T>())};
}

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_LANES_H_
