#include "jit/compile/warpgroup_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// "{%0, %1, ...}" as string literals in lines that fit.
std::vector<std::string> SumsText(int count) {
  constexpr int kPerLine = 11;
  std::vector<std::string> lines;
  for (int i = 0; i < count; i += kPerLine) {
    std::string line = i == 0 ? "{" : "";
    for (int k = i; k < std::min(i + kPerLine, count); ++k) {
      line += fmt::format("%{}{}", k, k + 1 < count ? ", " : "}, ");
    }
    lines.push_back(fmt::format("\"{}\"", line));
  }
  return lines;
}

// `function`, which adds to `count` sums, with what it calls them.
std::vector<std::string> WithSumsText(
    int count, const std::vector<std::string>& function) {
  std::vector<std::string> lines = {"#define KILN_SUMS \\"};
  const std::vector<std::string> sums = SumsText(count);
  for (size_t i = 0; i < sums.size(); ++i) {
    lines.push_back("  " + sums[i] + (i + 1 < sums.size() ? " \\" : ""));
  }
  lines.insert(lines.end(), function.begin(), function.end());
  lines.emplace_back("#undef KILN_SUMS");
  return lines;
}

// The operands of that many sums.
void AddSumsOperands(int count, std::vector<std::string>* lines) {
  constexpr int kPerLine = 5;
  for (int i = 0; i < count; i += kPerLine) {
    std::string line = i == 0 ? "      : " : "        ";
    for (int k = i; k < std::min(i + kPerLine, count); ++k) {
      line += fmt::format("\"+f\"(d[{}]){}", k, k + 1 < count ? ", " : "");
    }
    lines->push_back(line);
  }
}

// The upper word of a descriptor: from one group of eight rows to the next, in
// units of 16 bytes, and how rows lie. Of lines (conv_lines.cuh) the rows are
// channels.
constexpr uint32_t kContiguous = 8;
constexpr uint32_t kSwizzled = 3u << 30;    // by 32 bytes
constexpr uint32_t kLines = 64 | 1u << 30;  // by 128 bytes; also of rows

uint32_t RowsOfPixels(const ConvGeometry& g) {
  if (g.takes_lines) return kLines;
  const auto apart = static_cast<uint32_t>(g.rows_of_eight() ? g.pitch : 8);
  return g.octets_of_row() == 2 ? 2 * apart | kSwizzled : apart;
}

// How many units behind the first parts of weights and of inputs those lie that
// are multiplied, the smallest products first.
std::vector<std::pair<int64_t, int64_t>> PartsToMultiply(
    const ChunkOfProducts& chunk) {
  if (chunk.halves == 1) return {{0, 0}};
  constexpr int64_t kUnitsOfRow = 8;
  return {{chunk.weights * kUnitsOfRow, 0},
          {0, chunk.columns * kUnitsOfRow},
          {0, 0}};
}

class ProductWriter {
 public:
  explicit ProductWriter(const ConvGeometry& g)
      : g_(g),
        columns_(g.tiles_n * 8),
        sums_(columns_ / 2),
        type_(g.is_bfloat16() ? "bf16" : "f16") {}

  std::vector<std::string> Function() {
    const int64_t steps = CeilDiv(g_.steps(), g_.product_calls());
    const int64_t chains = g_.product_calls() > 1 ? 1 : g_.chains();
    const std::string head = "static __device__ void AddProducts(";
    const std::string indent(head.size(), ' ');
    lines_ = {fmt::format("{}float (&d)[{}],", head, sums_),
              indent + "kiln::Descriptor pixels,",
              indent + "kiln::Descriptor weights,",
              fmt::format("{}kiln::Descriptor empty, bool keep{}{}) {{", indent,
                          g_.has_uneven_phases() ? ", int absent" : "",
                          chains > 1 ? ", int chain" : "")};
    for (int64_t chain = 0; chain < chains; ++chain) {
      if (chain + 1 < chains) {
        lines_.push_back(fmt::format("  if (chain == {})", chain));
      }
      Steps(steps * chain / chains, steps * (chain + 1) / chains);
      if (chain + 1 < chains) lines_.emplace_back("  else");
    }
    lines_.emplace_back("}");
    return std::move(lines_);
  }

 private:
  // Those from `begin` to before `end`, as a statement.
  void Steps(int64_t begin, int64_t end) {
    lines_.insert(
        lines_.end(),
        {"  asm volatile(", "      \"{.reg .b64 x, w; .reg .b32 lower;\"",
         "      \".reg .pred keep, yes; .reg .b32 pixel_rows, rows;\"",
         fmt::format("      \"mov.b32 pixel_rows, {}; mov.b32 rows, {};\"",
                     RowsOfPixels(g_), kContiguous),
         fmt::format("      \"setp.ne.b32 keep, %{}, 0;\"", sums_ + 3),
         "      \"setp.eq.b32 yes, 0, 0;\""});
    if (g_.has_uneven_phases()) FindPresentTaps();
    // From the end, for the first tap is one that a phase may lack.
    for (int64_t i = begin; i < end; ++i) {
      const int64_t step = g_.has_uneven_phases() ? begin + end - 1 - i : i;
      Product(step * g_.product_calls(), i == begin ? "keep" : "yes");
    }
    lines_.emplace_back("      \"}\"");
    Operands();
  }

  // Predicates for taps of the first row, of the first column and of both
  // (AbsentTaps).
  void FindPresentTaps() {
    lines_.emplace_back(
        "      \".reg .pred row, column, both; .reg .b32 bits;\"");
    for (const auto& [name, bits] :
         {std::pair("row", 1), {"column", 2}, {"both", 3}}) {
      lines_.push_back(fmt::format(
          "      \"and.b32 bits, %{}, {}; setp.eq.b32 {}, bits, 0;\"",
          sums_ + 4, bits, name));
    }
  }

  // What guards the product with a tap that some phases lack.
  const char* Guard(int64_t step) const {
    if (!g_.has_uneven_phases()) return "";
    const int64_t tap = 2 * step / (g_.chunk / 8);
    const bool is_row = g_.has_uneven_phases(0) && tap / g_.taps(1) == 0;
    const bool is_column = g_.has_uneven_phases(1) && tap % g_.taps(1) == 0;
    if (is_row) return is_column ? "@both " : "@row ";
    return is_column ? "@column " : "";
  }

  // One instruction. Matrices are found from the first by adding their
  // distance, and from bit 16 on that of their halves or, of lines, that of
  // those of the next 64 pixels.
  void Product(int64_t step, const char* keep) {
    const int64_t last = g_.chunk / 8 * g_.taps(0) * g_.taps(1) - 1;
    const int64_t x = g_.OffsetOf(2 * step);
    const int64_t w = 2 * step * g_.block_channels();
    const bool is_empty = 2 * step + 1 > last;
    const int64_t half = is_empty         ? -x
                         : g_.takes_lines ? 8 * g_.chunk
                                          : g_.OffsetOf(2 * step + 1) - x;
    lines_.push_back(fmt::format("      \"add.s32 lower, %{}, {};\"", sums_,
                                 x + half * 65536));
    if (is_empty) {
      lines_.push_back(
          fmt::format("      \"add.s32 lower, lower, %{};\"", sums_ + 2));
    }
    lines_.emplace_back("      \"mov.b64 x, {lower, pixel_rows};\"");
    lines_.push_back(fmt::format("      \"add.s32 lower, %{}, {};\"", sums_ + 1,
                                 w + g_.block_channels() * 65536));
    lines_.emplace_back("      \"mov.b64 w, {lower, rows};\"");
    lines_.push_back(fmt::format(
        "      \"{}wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} "
        "\"",
        Guard(step), columns_, type_, type_));
    lines_.push_back(fmt::format("      KILN_SUMS \"{}, {}, 1, 1, 0, {};\"",
                                 g_.channel_rows ? "w, x" : "x, w", keep,
                                 g_.takes_lines ? 1 : 0));
  }

  void Operands() {
    AddSumsOperands(sums_, &lines_);
    lines_.emplace_back("      : \"r\"(pixels), \"r\"(weights), \"r\"(empty),");
    lines_.push_back(
        fmt::format("        \"r\"(static_cast<int>(keep)){});",
                    g_.has_uneven_phases() ? ", \"r\"(absent)" : ""));
  }

  const ConvGeometry& g_;
  const int columns_;
  const int sums_;
  const std::string type_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> WarpgroupProducts(const ConvGeometry& g) {
  return WithSumsText(g.tiles_n * 4, ProductWriter(g).Function());
}

std::vector<std::string> ChunkProducts(const ChunkOfProducts& chunk) {
  const int sums = static_cast<int>(chunk.columns / 2);
  const char* const type = chunk.is_bfloat16 ? "bf16" : "f16";
  std::vector<std::string> lines = {
      fmt::format("static __device__ void AddProducts(float (&d)[{}],", sums),
      "                                   kiln::Descriptor weights,",
      "                                   kiln::Descriptor inputs,",
      "                                   bool keep) {",
      "  asm volatile(",
      "      \"{.reg .b64 w, x; .reg .b32 lower, rows;\"",
      "      \".reg .pred keep, yes;\"",
      fmt::format("      \"mov.b32 rows, {};\"", kLines),
      fmt::format("      \"setp.ne.b32 keep, %{}, 0;\"", sums + 2),
      "      \"setp.eq.b32 yes, 0, 0;\""};
  const auto matrix = [&](const char* name, int operand, int64_t units) {
    lines.push_back(
        fmt::format("      \"add.s32 lower, %{}, {};\"", operand, units));
    lines.push_back(
        fmt::format("      \"mov.b64 {}, {{lower, rows}};\"", name));
  };
  const char* keep = "keep";
  for (const auto& [weights, inputs] : PartsToMultiply(chunk)) {
    for (int64_t k = 0; k < chunk.depth; k += 16) {
      matrix("w", sums, weights + k / 8);
      matrix("x", sums + 1, inputs + k / 8);
      lines.push_back(fmt::format(
          "      \"wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} \"",
          chunk.columns, type, type));
      lines.push_back(
          fmt::format("      KILN_SUMS \"w, x, {}, 1, 1, 0, 0;\"", keep));
      keep = "yes";
    }
  }
  lines.emplace_back("      \"}\"");
  AddSumsOperands(sums, &lines);
  lines.emplace_back("      : \"r\"(weights), \"r\"(inputs),");
  lines.emplace_back("        \"r\"(static_cast<int>(keep)));");
  lines.emplace_back("}");
  return WithSumsText(sums, lines);
}

}  // namespace kiln
