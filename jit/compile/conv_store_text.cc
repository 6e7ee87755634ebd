#include "jit/compile/conv_store_text.h"

#include "fmt/format.h"

namespace kiln {

std::vector<std::string> StoreFunction(const std::string& name,
                                       const std::string& value,
                                       const std::vector<std::string>& body) {
  const std::string head = fmt::format("static __device__ void {}(", name);
  const std::string indent(head.size(), ' ');
  std::vector<std::string> lines = {
      head + "const Tensors& t,", indent + "const kiln::Point<Index>& at,",
      fmt::format("{}{}, bool inside) {{", indent, value)};
  for (const std::string& line : body) lines.push_back("  " + line);
  lines.push_back("}");
  return lines;
}

std::vector<std::string> PairsAlignedFunction(
    const std::vector<std::string>& tensors) {
  return {"static __device__ bool ArePairsAligned(const Tensors& t) {",
          fmt::format("  return kiln::ArePairsAligned({});",
                      fmt::join(tensors, ", ")),
          "}"};
}

std::vector<std::string> TensorFunction(const std::string& name,
                                        const std::string& tensor) {
  return {fmt::format("static __device__ auto* {}(const Tensors& t) {{", name),
          fmt::format("  return {};", tensor), "}"};
}

std::vector<std::string> StoreSumsFunction(
    const std::vector<std::string>& tensors) {
  std::vector<std::string> lines = {
      "template <typename Stores, typename Sums>",
      "static __device__ void StoreSums(const Tensors& t,",
      "                                 const Stores& stores,",
      "                                 const Sums& sums) {"};
  for (const std::string& tensor : tensors) {
    lines.push_back(fmt::format("  stores.Store({}, sums);", tensor));
  }
  lines.push_back("}");
  return lines;
}

std::vector<std::string> BesideText(
    const std::vector<ElementCode::ReadBeside>& reads) {
  std::vector<std::string> pairs, numbers, halves;
  for (const auto& [name, tensor, type] : reads) {
    pairs.push_back(fmt::format("  kiln::PairOf<{}>::Type {};", type, name));
    numbers.push_back(fmt::format("  float {};", name));
    halves.push_back(
        fmt::format("kiln::OfPair<{}, kHalf>(pair.{})", type, name));
  }
  return {"struct BesidePair {",
          fmt::format("{}", fmt::join(pairs, "\n")),
          "};",
          "struct Beside {",
          fmt::format("{}", fmt::join(numbers, "\n")),
          "};",
          "template <int kHalf>",
          "static __device__ Beside OfBeside(const BesidePair& pair) {",
          fmt::format("  return {{{}}};", fmt::join(halves, ",\n          ")),
          "}"};
}

std::vector<std::string> LoadBesideText(
    const std::vector<ElementCode::ReadBeside>& reads) {
  std::vector<std::string> loads;
  for (const ElementCode::ReadBeside& read : reads) {
    loads.push_back(fmt::format("kiln::LoadPairIf<kAligned>(inside, {}, at.i)",
                                read.tensor));
  }
  return {
      "template <bool kAligned>", "static __device__ BesidePair LoadBeside(",
      "    const Tensors& t, const kiln::Point<Index>& at, bool inside) {",
      fmt::format("  return {{{}}};", fmt::join(loads, ",\n          ")), "}"};
}

}  // namespace kiln
