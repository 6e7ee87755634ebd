#include "jit/compile/warpgroup_text.h"

#include <algorithm>

#include "fmt/format.h"

namespace kiln {
namespace {

// "%3, %4, ..." in lines that fit, after `head`, before `tail`.
std::vector<std::string> Registers(int first, int count,
                                   const std::string& head,
                                   const std::string& tail) {
  constexpr int kPerLine = 12;
  std::vector<std::string> lines;
  for (int i = 0; i < count; i += kPerLine) {
    std::string line = i == 0 ? head : "";
    for (int k = i; k < std::min(i + kPerLine, count); ++k) {
      line += fmt::format("%{}{}", first + k, k + 1 < count ? ", " : tail);
    }
    lines.push_back(fmt::format("\"{}\"", line));
  }
  return lines;
}

// The member function `name`: sums[first] to sums[first + n / 2 - 1] += the
// product of 64 x 8 and 8 x n matrices. PTX writes the sums out one by one, so
// no template can.
std::vector<std::string> ProductFunction(const std::string& name, int sums,
                                         int first, int columns,
                                         bool may_clear) {
  constexpr int kPerLine = 4;
  const int count = columns / 2;
  const std::string head = fmt::format("static __device__ void {}(", name);
  const std::string indent(head.size(), ' ');
  std::vector<std::string> lines = {
      fmt::format("{}float (&d)[{}], kiln::Descriptor a,", head, sums),
      indent + "kiln::Descriptor b" + (may_clear ? ", bool keep) {" : ") {"),
      "  asm volatile(",
      fmt::format("      \"{{.reg .pred keep; setp.ne.b32 keep, %{}, 0;\"",
                  count + 2),
      fmt::format("      \"wgmma.mma_async.sync.aligned.m64n{}k8.f32.tf32"
                  ".tf32 \"",
                  columns)};
  for (const std::string& line : Registers(0, count, "{", "}, ")) {
    lines.push_back("      " + line);
  }
  lines.push_back(
      fmt::format("      \"%{}, %{}, keep, 1, 1;}}\"", count, count + 1));
  for (int i = 0; i < count; i += kPerLine) {
    std::string line = i == 0 ? "      : " : "        ";
    for (int k = i; k < std::min(i + kPerLine, count); ++k) {
      line +=
          fmt::format("\"+f\"(d[{}]){}", first + k, k + 1 < count ? ", " : "");
    }
    lines.push_back(line);
  }
  lines.push_back(fmt::format("      : \"l\"(a), \"l\"(b), \"r\"({}));",
                              may_clear ? "static_cast<int>(keep)" : "1"));
  lines.push_back("}");
  return lines;
}

}  // namespace

std::vector<std::string> WarpgroupProducts(const ConvGeometry& g) {
  const int channels = static_cast<int>(g.block_channels());
  const int columns = (g.splits_weight ? 2 : 1) * channels;
  std::vector<std::string> lines =
      ProductFunction("AddProducts", columns / 2, 0, columns, true);
  if (g.splits_input) {
    const std::vector<std::string> small =
        ProductFunction("AddSmallProducts", columns / 2,
                        g.splits_weight ? channels / 2 : 0, channels, false);
    lines.insert(lines.end(), small.begin(), small.end());
  }
  return lines;
}

}  // namespace kiln
