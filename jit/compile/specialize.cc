#include "jit/compile/specialize.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"

namespace kiln {
namespace {

constexpr size_t kColumns = 80;

// `items` after `head`, with commas between, broken before column 80; lines
// after the first begin with `continuation`.
std::string Wrapped(std::string head, const std::vector<std::string>& items,
                    const std::string& continuation, std::string_view tail) {
  std::string text;
  std::string line = std::move(head);
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string item =
        items[i] + (i + 1 < items.size() ? "," : std::string(tail));
    if (i > 0 && line.size() + 1 + item.size() > kColumns) {
      text += line + "\n";
      line = continuation + item;
    } else {
      line += (i > 0 ? " " : "") + item;
    }
  }
  return text + line + "\n";
}

// "// v1 = conv2d(i0, i1, i2, padding=1)", broken between arguments.
std::string Comment(const std::string& formula) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  for (size_t comma = formula.find(", "); comma != std::string::npos;
       comma = formula.find(", ", begin)) {
    pieces.push_back(formula.substr(begin, comma - begin));
    begin = comma + 2;
  }
  pieces.push_back(formula.substr(begin));
  return Wrapped("// ", pieces, "//     ", "");
}

std::string Indented(const std::vector<std::string>& lines, size_t indent) {
  std::string text;
  for (const std::string& line : lines) {
    text += std::string(indent, ' ') + line + "\n";
  }
  return text;
}

std::string TensorsStruct(const KernelSpec& spec) {
  std::string text = "  struct Tensors {\n";
  for (const KernelTensor& tensor : spec.tensors) {
    text += fmt::format("    {}{}* {};\n", tensor.is_output ? "" : "const ",
                        tensor.type, tensor.name);
  }
  return text + "  };\n";
}

// A member function of a point and of tensors, or of what a thread holds of
// them.
std::string MemberFunction(const std::string& declaration, bool is_vectorised,
                           const std::string& argument,
                           const std::vector<std::string>& body) {
  std::string text = "\n";
  std::vector<std::string> parameters = {"const Tensors& t",
                                         "const kiln::Point<Index>& at"};
  if (is_vectorised) {
    text += "  template <typename Fields, typename At>\n";
    parameters = {"Fields& t", "const At& at"};
  }
  if (!argument.empty()) parameters.push_back(argument);
  const std::string head = fmt::format("  static __device__ {}(", declaration);
  text += Wrapped(head, parameters, std::string(head.size(), ' '), ") {");
  return text + Indented(body, 4) + "  }\n";
}

std::string ReadFunction(const KernelSpec& spec) {
  std::vector<std::string> body = spec.read_body;
  body.push_back(fmt::format("return {};", spec.read_result));
  return MemberFunction("float Read", spec.is_vectorised, spec.read_argument,
                        body);
}

std::string ElementFunction(const KernelSpec& spec) {
  return MemberFunction("void Element", spec.is_vectorised,
                        spec.element_argument, spec.element_body);
}

std::string EntryFunction(const KernelSpec& spec, const EntrySpec& entry) {
  std::vector<std::string> parameters;
  std::vector<std::string> names;
  for (const KernelTensor& tensor : spec.tensors) {
    const std::string type =
        tensor.type == "Reducer" ? "Spec::Reducer" : tensor.type;
    parameters.push_back(fmt::format("{}{}* __restrict__ {}",
                                     tensor.is_output ? "" : "const ", type,
                                     tensor.name));
    names.push_back(tensor.name);
  }
  const std::string head = entry.symbol + "(";
  const std::string indent(head.size(), ' ');
  const std::string bounds =
      entry.min_blocks == 0
          ? fmt::format("{}", entry.threads)
          : fmt::format("{}, {}", entry.threads, entry.min_blocks);
  return fmt::format("\nextern \"C\" __global__ void __launch_bounds__({})\n",
                     bounds) +
         Wrapped(head, parameters, indent, ") {") +
         (entry.awaits_itself ? "" : "  kiln::AwaitPrevious();\n") +
         Wrapped(fmt::format("  {}<Spec>({{", entry.function), names,
                 std::string(6, ' '), "});") +
         "}\n";
}

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Length of the name of a plan's value at the start of `word`, without what
// lowering appends: 3 for "v12_mean"; 0 for other words.
size_t ValueNameLength(std::string_view word) {
  for (const std::string_view prefix : {"i", "v", "output"}) {
    if (word.substr(0, prefix.size()) != prefix) continue;
    size_t end = prefix.size();
    while (end < word.size() && word[end] >= '0' && word[end] <= '9') ++end;
    const bool is_whole = end == word.size() || word[end] == '_';
    if (end > prefix.size() && is_whole) return end;
  }
  return 0;
}

}  // namespace

std::string UnitIdentity(const std::string& unit) {
  std::string identity;
  std::map<std::string, size_t> numbers;
  for (size_t at = 0; at < unit.size();) {
    size_t end = at;
    while (end < unit.size() && IsWord(unit[end])) ++end;
    const std::string word = unit.substr(at, std::max<size_t>(end - at, 1));
    const size_t length = ValueNameLength(word);
    if (length == 0) {
      identity += word;
    } else {
      const size_t number =
          numbers.emplace(word.substr(0, length), numbers.size()).first->second;
      identity += fmt::format("${}", number) + word.substr(length);
    }
    at += word.size();
  }
  return identity;
}

std::string WriteUnit(const KernelSpec& spec) {
  std::string unit;
  for (const std::string& formula : spec.formula) unit += Comment(formula);
  unit += fmt::format("#include \"{}\"\n#include \"dependent_launch.cuh\"\n\n",
                      spec.source_file);
  unit += fmt::format("struct Spec {{\n  using Index = {};\n", spec.index);
  unit += Indented(spec.constants, 2) + "\n";
  unit += TensorsStruct(spec);
  if (!spec.members.empty()) {
    unit.append("\n").append(Indented(spec.members, 2));
  }
  if (spec.reads_elements) unit += ReadFunction(spec);
  if (spec.has_element) unit += ElementFunction(spec);
  unit += "};\n";
  for (const EntrySpec& entry : spec.entries) {
    unit += EntryFunction(spec, entry);
  }
  return unit;
}

}  // namespace kiln
