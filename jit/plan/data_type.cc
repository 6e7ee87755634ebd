#include "jit/plan/data_type.h"

namespace kiln {

int64_t ElementSize(DataType type) { return type == DataType::kF32 ? 4 : 2; }

std::string_view DataTypeName(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "f32";
    case DataType::kF16:
      return "f16";
    case DataType::kBF16:
      return "bf16";
  }
  return "unknown";
}

std::optional<DataType> ParseDataType(std::string_view name) {
  for (DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
    if (name == DataTypeName(type)) return type;
  }
  return std::nullopt;
}

}  // namespace kiln
