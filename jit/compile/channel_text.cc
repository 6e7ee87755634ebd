#include "jit/compile/channel_text.h"

#include <iterator>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// In bytes, so that one access reads all fields, or four.
int64_t AlignmentOf(int64_t fields) {
  if (fields > 2) return 4 * kFieldBytes;
  return fields == 2 ? 2 * kFieldBytes : kFieldBytes;
}

}  // namespace

int64_t ChannelBytes(int64_t fields) {
  return RoundUp(fields * kFieldBytes, AlignmentOf(fields));
}

int64_t ChannelBytes(const ElementCode& code) {
  return ChannelBytes(static_cast<int64_t>(code.ChannelFields().size()));
}

std::vector<std::string> ChannelText(const ElementCode& code,
                                     const std::string& state) {
  const std::vector<std::string> fields = code.ChannelFields();
  std::vector<std::string> lines = {fmt::format(
      "struct alignas({}) Channel {{", AlignmentOf(std::ssize(fields)))};
  for (const std::string& field : fields) {
    lines.push_back("  float " + field + ";");
  }
  lines.insert(lines.end(),
               {"};", "static __device__ Channel ReadChannel(",
                fmt::format("    const Tensors& t, const kiln::Point<Index>& "
                            "at{}) {{",
                            state.empty() ? "" : ", " + state)});
  for (const std::string& line : code.channel_lines()) {
    lines.push_back("  " + line);
  }
  lines.push_back(fmt::format("  return {{{}}};", fmt::join(fields, ", ")));
  lines.push_back("}");
  return lines;
}

int64_t SharedChannelUnits(const ElementCode& code,
                           const ConvGeometry& geometry) {
  const int64_t bytes = ChannelBytes(code);
  if (!geometry.has_groups() || bytes > kMaxChannelBytes) return 0;
  return CeilDiv(bytes * geometry.images * geometry.block_channels(), 16);
}

}  // namespace kiln
