#include "jit/compile/channel_text.h"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Aligned so that one access reads all, or four fields.
int64_t AlignedBytes(size_t fields) {
  const auto bytes = static_cast<int64_t>(fields) * 4;
  return fields <= 2 ? bytes : RoundUp(bytes, 16);
}

std::string AlignmentText(size_t fields) {
  if (fields < 2) return "";
  return fields == 2 ? "alignas(8) " : "alignas(16) ";
}

}  // namespace

std::vector<std::string> ChannelText(const ElementCode& code) {
  const std::vector<std::string> fields = code.ChannelFields();
  std::vector<std::string> lines = {
      fmt::format("struct {}Channel {{", AlignmentText(fields.size()))};
  for (const std::string& field : fields) {
    lines.push_back("  float " + field + ";");
  }
  lines.insert(lines.end(),
               {"};", "static __device__ Channel ReadChannel(",
                "    const Tensors& t, const kiln::Point<Index>& at) {"});
  for (const std::string& line : code.channel_lines()) {
    lines.push_back("  " + line);
  }
  lines.push_back(fmt::format("  return {{{}}};", fmt::join(fields, ", ")));
  lines.push_back("}");
  return lines;
}

int64_t SharedChannelUnits(const ElementCode& code,
                           const ConvGeometry& geometry) {
  const int64_t bytes = AlignedBytes(code.ChannelFields().size());
  if (!geometry.has_groups() || bytes > kMaxChannelBytes) return 0;
  return CeilDiv(bytes * geometry.block_channels(), 16);
}

}  // namespace kiln
