#include "client/cli/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <regex>

namespace kiln::cli {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
// Magic, two bytes of version, two bytes of header length.
constexpr size_t kPreambleBytes = 10;
constexpr size_t kAlignment = 64;

std::string_view TypeCode(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "<f4";
    case DataType::kF16:
      return "<f2";
    case DataType::kBF16:
      return "<u2";
  }
  return "";
}

std::string ShapeText(const Dims& dims) {
  std::string text = "(";
  for (const int64_t dim : dims) text += fmt::format("{}, ", dim);
  if (dims.size() > 1) text.resize(text.size() - 2);
  if (dims.size() == 1) text.resize(text.size() - 1);
  return text + ")";
}

struct Header {
  std::string type;
  bool fortran_order = false;
  std::string shape;  // as ShapeText spells it
  size_t data_offset = 0;
};

absl::StatusOr<Header> ParseHeader(std::string_view file) {
  const absl::Status malformed =
      absl::InvalidArgumentError("It is not an .npy file of version 1.0");
  if (file.size() < kPreambleBytes || !file.starts_with(kMagic) ||
      file[6] != 1) {
    return malformed;
  }
  Header header;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(file[i]); };
  header.data_offset = kPreambleBytes + byte(8) + 256 * byte(9);
  if (file.size() < header.data_offset) return malformed;
  const std::string text(
      file.substr(kPreambleBytes, header.data_offset - kPreambleBytes));

  std::smatch match;
  static const std::regex type("'descr':\\s*'([^']*)'");
  static const std::regex order("'fortran_order':\\s*(True|False)");
  static const std::regex shape("'shape':\\s*(\\([0-9, ]*\\))");
  if (!std::regex_search(text, match, type)) return malformed;
  header.type = match[1];
  if (!std::regex_search(text, match, order)) return malformed;
  header.fortran_order = match[1] == "True";
  if (!std::regex_search(text, match, shape)) return malformed;
  header.shape = match[1];
  return header;
}

}  // namespace

int64_t MaxNpyBytes(const TensorDesc& desc) {
  return kPreambleBytes + std::numeric_limits<uint16_t>::max() +
         SizeBytes(desc);
}

absl::StatusOr<std::string> ParseNpy(std::string_view file,
                                     const TensorDesc& desc) {
  const absl::StatusOr<Header> header = ParseHeader(file);
  if (!header.ok()) return header.status();
  const std::string_view data = file.substr(header->data_offset);
  const bool fits = header->type == TypeCode(desc.dtype) &&
                    header->shape == ShapeText(desc.dims) &&
                    static_cast<int64_t>(data.size()) == SizeBytes(desc);
  if (fits && !header->fortran_order) return std::string(data);
  return absl::InvalidArgumentError(fmt::format(
      "The .npy file does not hold the tensor (got {} {}, {} bytes{}, wanted: "
      "{} {}, {} bytes)",
      header->type, header->shape, data.size(),
      header->fortran_order ? ", Fortran order" : "", TypeCode(desc.dtype),
      ShapeText(desc.dims), SizeBytes(desc)));
}

std::string FormatNpy(const TensorDesc& desc, std::string_view elements) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                  TypeCode(desc.dtype), ShapeText(desc.dims));
  const size_t unpadded = kPreambleBytes + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\1';
  file += '\0';
  file += static_cast<char>(header.size() % 256);
  file += static_cast<char>(header.size() / 256);
  file += header;
  return file.append(elements);
}

}  // namespace kiln::cli
