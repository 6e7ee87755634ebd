#ifndef KILN_JIT_COMPILE_CONV_STORE_TEXT_H_
#define KILN_JIT_COMPILE_CONV_STORE_TEXT_H_

#include <string>
#include <vector>

#include "jit/compile/element_code.h"

namespace kiln {

// Lines of a convolution's Spec: how its elements are stored, and what is read
// beside them.

// A function that stores `value`, a parameter with its type, by `body`.
std::vector<std::string> StoreFunction(const std::string& name,
                                       const std::string& value,
                                       const std::vector<std::string>& body);

// Whether two neighbours in each of `tensors` are aligned as one.
std::vector<std::string> PairsAlignedFunction(
    const std::vector<std::string>& tensors);

// A function that returns where a tensor begins.
std::vector<std::string> TensorFunction(const std::string& name,
                                        const std::string& tensor);

// A function by which RunStores (conv_run_stores.cuh) stores to `tensors`.
std::vector<std::string> StoreSumsFunction(
    const std::vector<std::string>& tensors);

// Spec::Beside of conv_beside.cuh and conv_rounded.cuh: what is read of two
// neighbours, and of each; and how both are loaded at once.
std::vector<std::string> BesideText(
    const std::vector<ElementCode::ReadBeside>& reads);
std::vector<std::string> LoadBesideText(
    const std::vector<ElementCode::ReadBeside>& reads);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_STORE_TEXT_H_
