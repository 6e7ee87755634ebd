#ifndef KILN_JIT_COMPILE_HELD_TEXT_H_
#define KILN_JIT_COMPILE_HELD_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/compile/element_code.h"

namespace kiln {

// The axis along which vectors of a domain run without crossing its end:
// columns, or of single pixels channels.
enum class VectorAxis : uint8_t { kNone, kW, kC };
VectorAxis VectorAxisOf(const Dims& domain, int64_t width);

// Members of a Spec that let element code run on neighbours in registers:
//
//   template <int kCount>
//   struct Held { kiln::Vector<float, kCount> i0; const float* i1; };
//   static bool IsAligned(const Tensors& t)     whether 16-byte accesses may
//                                               start at each whole tensor
//   static void FetchHeld(t, at, is_aligned, Held* held)
//   static void PutHeld(const Held& held, at, is_aligned, t)
//   static const auto& KeptOf(const Held& held)  what is kept, if anything is
//
// A tensor becomes a vector if `code` reads or writes it at at.i alone, or
// reads it at one index that runs as vectors do; any other stays a pointer.
// `prefix` makes the names InputHeld,
// IsInputAligned, FetchInputHeld. `streams`: whole tensors are not read again.
struct HeldText {
  std::vector<std::string> lines;
  bool any_vector = false;
};

// How a thread holds neighbours of `tensor`: as kiln::Vector or, if they are
// only written, kiln::Results.
std::string_view HeldType(const KernelTensor& tensor);

HeldText WriteHeld(const ElementCode& code,
                   const std::vector<KernelTensor>& tensors, VectorAxis axis,
                   const std::string& prefix = "", bool streams = false);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_HELD_TEXT_H_
