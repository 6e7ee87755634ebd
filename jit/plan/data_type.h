#ifndef KILN_JIT_PLAN_DATA_TYPE_H_
#define KILN_JIT_PLAN_DATA_TYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

// Storage type of a tensor element. Arithmetic inside a plan is f32 on a GPU
// and f64 on the `cpu` device, whatever the storage type.
//
// The numbers are part of the wire schema and of cache keys: never reuse one.
enum class DataType : uint8_t {
  kF32 = 1,
  kF16 = 2,   // IEEE 754 binary16
  kBF16 = 3,  // upper half of binary32
};

// Bytes of one element: 4, 2, 2.
int64_t ElementSize(DataType type);

// "f32", "f16", "bf16": the spelling of plan text, logs and JSON.
std::string_view DataTypeName(DataType type);

// Inverse of DataTypeName; nullopt for any other text.
std::optional<DataType> ParseDataType(std::string_view name);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_DATA_TYPE_H_
