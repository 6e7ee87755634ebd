#ifndef KILN_CLIENT_CLI_NPY_H_
#define KILN_CLIENT_CLI_NPY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "jit/plan/tensor_desc.h"

namespace kiln::cli {

// NumPy's file format, version 1.0 (numpy/lib/format.py), C order,
// little-endian. f32 is '<f4', f16 '<f2'; NumPy has no bf16, which travels as
// its bits in '<u2'.

// How long a file is, at most, that holds a tensor of `desc`.
int64_t MaxNpyBytes(const TensorDesc& desc);

// The elements of `file`, which must hold exactly a tensor of `desc`.
//
// Errors: INVALID_ARGUMENT saying what the file holds and what is wanted.
absl::StatusOr<std::string> ParseNpy(std::string_view file,
                                     const TensorDesc& desc);

// A file that holds the tensor `desc` with the given elements.
std::string FormatNpy(const TensorDesc& desc, std::string_view elements);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_NPY_H_
