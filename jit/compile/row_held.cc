#include "jit/compile/row_held.h"

#include <algorithm>
#include <set>

#include "fmt/format.h"
#include "jit/compile/element_index.h"
#include "jit/compile/held_text.h"

namespace kiln {
namespace {

void Append(const std::vector<std::string>& more,
            std::vector<std::string>* lines) {
  lines->insert(lines->end(), more.begin(), more.end());
}

// The first line of a member function, whose parameters go on below.
std::string Head(const std::string& type, const std::string& name) {
  return fmt::format("static __device__ {} {}(", type, name);
}

}  // namespace

std::vector<const ElementCode*> RowHeld::Codes(bool reads) const {
  return reads ? read_ : std::vector<const ElementCode*>{&element_};
}

bool RowHeld::IsAccessed(const KernelTensor& tensor, bool reads) const {
  const std::vector<const ElementCode*> codes = Codes(reads);
  return std::any_of(codes.begin(), codes.end(), [&](const ElementCode* code) {
    return code->accesses().count(tensor.name) > 0;
  });
}

// Whether statistics are taken of the tensor's own elements, and nothing reads
// it in another way.
bool RowHeld::IsReadWhole(const KernelTensor& tensor) const {
  if (ViewOf(tensor) != View::kWhole) return false;
  return std::any_of(read_.begin(), read_.end(), [&](const ElementCode* code) {
    const auto access = code->accesses().find(tensor.name);
    return access != code->accesses().end() && access->second == "at.i";
  });
}

std::set<std::string> RowHeld::IndicesOf(const KernelTensor& tensor) const {
  std::set<std::string> indices;
  for (const bool reads : {true, false}) {
    for (const ElementCode* code : Codes(reads)) {
      const auto access = code->accesses().find(tensor.name);
      if (access != code->accesses().end()) indices.insert(access->second);
    }
  }
  return indices;
}

RowHeld::View RowHeld::ViewOf(const KernelTensor& tensor) const {
  const std::set<std::string> indices = IndicesOf(tensor);
  if (indices.empty()) return View::kNone;
  if (tensor.is_output || indices == std::set<std::string>{"at.i"}) {
    return View::kWhole;
  }
  const bool in_vectors =
      AlignDims(kernel_.group.domain)[3] % rows().vector == 0;
  const bool along_w = indices.size() == 1 && RunsWithW(*indices.begin());
  return along_w && in_vectors && !is_team() ? View::kAlongW : View::kTensor;
}

const KernelTensor& RowHeld::CopiedTensor() const {
  const std::vector<KernelTensor>& list = tensors_.list();
  return *std::find_if(
      list.begin(), list.end(),
      [&](const KernelTensor& tensor) { return IsReadWhole(tensor); });
}

// The copy is there when a vector is read, and when results are computed if
// nothing else is kept. A warp has then what it has read.
bool RowHeld::IsHeldAlready(const KernelTensor& tensor, bool reads) const {
  if (is_held_through()) return !reads && IsAccessed(tensor, true);
  if (rows().keeper == RowKeeper::kWarp) {
    return !reads && rows().reads_again && IsAccessed(tensor, true);
  }
  if (is_chain()) return keeps() && IsReadWhole(tensor);
  if (!rows().copies || &tensor != &CopiedTensor()) return false;
  return reads || rows().reads_again;
}

std::vector<std::string> RowHeld::Lines() const {
  std::vector<std::string> lines = StructLines();
  if (rows().copies) Append(CopiedLines(), &lines);
  Append(FetchLines(true), &lines);
  Append(FetchLines(false), &lines);
  Append(PutLines(), &lines);
  Append(AlignedLines(), &lines);
  return lines;
}

std::vector<std::string> RowHeld::StructLines() const {
  std::vector<std::string> lines = {"template <int kCount>", "struct Held {"};
  for (const KernelTensor& tensor : tensors_.list()) {
    const View view = ViewOf(tensor);
    if (view == View::kNone) continue;
    lines.push_back(
        view == View::kTensor
            ? fmt::format("  const {}* {};", tensor.type, tensor.name)
            : fmt::format("  kiln::{}<{}, kCount> {};", HeldType(tensor),
                          tensor.type, tensor.name));
  }
  lines.emplace_back("};");
  return lines;
}

std::vector<std::string> RowHeld::CopiedLines() const {
  const std::string& name = CopiedTensor().name;
  return {"static __device__ const Kept* Source(const Tensors& t) {",
          fmt::format("  return t.{};", name),
          "}",
          "template <int kCount>",
          "static __device__ kiln::Vector<Kept, kCount>* CopiedIn(",
          "    Held<kCount>* held) {",
          fmt::format("  return &held->{};", name),
          "}"};
}

// Loads of all that is held stand one behind the other.
std::string RowHeld::FetchText(const KernelTensor& tensor, bool reads) const {
  const View view = ViewOf(tensor);
  if (view == View::kTensor) {
    return fmt::format("  held->{0} = t.{0};", tensor.name);
  }
  const std::string index = *IndicesOf(tensor).begin();
  const bool is_only_read = is_chain() && !keeps();
  const bool is_compact =
      view == View::kAlongW || (reads && (is_held_through() || is_only_read));
  const bool streams = is_compact && view == View::kWhole && rows().streams;
  return fmt::format("  kiln::{}{}(t.{}, {}, is_aligned, &held->{});",
                     is_compact ? "FetchCompactly" : "Fetch",
                     streams ? "<true>" : "", tensor.name, index, tensor.name);
}

// What the code reads of the vector that begins at `at`.
std::vector<std::string> RowHeld::FetchLines(bool reads) const {
  const std::string head =
      Head("void", reads ? "FetchForRead" : "FetchForElement");
  const std::string indent(head.size(), ' ');
  std::vector<std::string> lines = {
      "template <int kCount>", head + "const Tensors& t,",
      indent + "const kiln::Point<Index>& at,",
      indent + "bool is_aligned, Held<kCount>* held) {"};
  for (const KernelTensor& tensor : tensors_.list()) {
    if (tensor.is_output || !IsAccessed(tensor, reads) ||
        IsHeldAlready(tensor, reads)) {
      continue;
    }
    lines.push_back(FetchText(tensor, reads));
  }
  lines.emplace_back("}");
  return lines;
}

std::vector<std::string> RowHeld::PutLines() const {
  const std::string head = Head("void", "PutResults");
  const std::string indent(head.size(), ' ');
  std::vector<std::string> lines = {
      "template <int kCount>", head + "const Tensors& t, Index i,",
      indent + "bool is_aligned,", indent + "const Held<kCount>& held) {"};
  for (const KernelTensor& tensor : tensors_.list()) {
    if (!tensor.is_output || ViewOf(tensor) == View::kNone) continue;
    lines.push_back(fmt::format("  kiln::Put(held.{0}, is_aligned, t.{0}, i);",
                                tensor.name));
  }
  lines.emplace_back("}");
  return lines;
}

std::vector<std::string> RowHeld::AlignedLines() const {
  std::vector<std::string> names;
  for (const KernelTensor& tensor : tensors_.list()) {
    const View view = ViewOf(tensor);
    if (view == View::kNone || view == View::kTensor) continue;
    names.push_back("t." + tensor.name);
  }
  return {"static __device__ bool IsAligned(const Tensors& t) {",
          fmt::format("  return kiln::AreAligned({});", fmt::join(names, ", ")),
          "}"};
}

std::vector<KernelTensor> RowHeld::KeptTensors() const {
  std::vector<KernelTensor> kept = tensors_.list();
  std::erase_if(kept, [&](const KernelTensor& tensor) {
    return !keeps() || !IsReadWhole(tensor);
  });
  return kept;
}

int64_t RowHeld::KeptBytes() const {
  int64_t bytes = 0;
  for (const KernelTensor& tensor : KeptTensors()) {
    bytes += ElementSize(tensor.place.dtype);
  }
  return bytes;
}

// Each tensor's places lie behind those of the one before.
std::vector<std::string> RowHeld::KeptLines() const {
  const std::string begin = Head("void", "BeginCopies");
  const std::string indent(begin.size(), ' ');
  std::vector<std::string> fields = {"struct Kept {"};
  std::vector<std::string> places = {
      "static __device__ Kept KeptIn(unsigned char* memory) {", "  Kept kept;"};
  std::vector<std::string> copies = {begin + "const Tensors& t, Index i,",
                                     indent + "bool is_aligned, int place,",
                                     indent + "const Kept& kept) {"};
  std::vector<std::string> recalls = {
      "template <int kCount>",
      "static __device__ void Recall(const Kept& kept, int place,",
      "                              Held<kCount>* held) {"};
  int64_t offset = 0;
  for (const KernelTensor& tensor : KeptTensors()) {
    fields.push_back(fmt::format("  {}* {};", tensor.type, tensor.name));
    places.push_back(
        fmt::format("  kept.{0} = reinterpret_cast<{1}*>(memory + {2} * "
                    "kPlaces);",
                    tensor.name, tensor.type, offset));
    copies.push_back(
        fmt::format("  kiln::BeginCopy<kVector, kStreams>(t.{0}, i, "
                    "is_aligned,",
                    tensor.name));
    copies.push_back(
        fmt::format("                                     "
                    "kept.{} + place);",
                    tensor.name));
    recalls.push_back(fmt::format(
        "  kiln::Fetch(kept.{0}, place, true, &held->{0});", tensor.name));
    offset += ElementSize(tensor.place.dtype);
  }
  fields.emplace_back("};");
  places.emplace_back("  return kept;");
  std::vector<std::string> lines = fields;
  for (std::vector<std::string>* function : {&places, &copies, &recalls}) {
    function->emplace_back("}");
    Append(*function, &lines);
  }
  return lines;
}

std::vector<KernelTensor> RowHeld::WholeInputs() const {
  std::vector<KernelTensor> inputs;
  for (const KernelTensor& tensor : tensors_.list()) {
    if (tensor.is_output || ViewOf(tensor) != View::kWhole) continue;
    inputs.push_back(tensor);
  }
  return inputs;
}

int64_t RowHeld::StagedBytes() const {
  int64_t bytes = 0;
  for (const KernelTensor& tensor : WholeInputs()) {
    bytes += ElementSize(tensor.place.dtype);
  }
  return bytes;
}

std::vector<std::string> RowHeld::StagingLines() const {
  const std::string head = Head("void", "ForEachInput");
  std::vector<std::string> lines = {
      "template <typename Function>", head + "const Tensors& t,",
      std::string(head.size(), ' ') + "const Function& function) {"};
  std::vector<std::string> staged = {
      "static __device__ Tensors Staged(Tensors t, unsigned char* slot) {"};
  int64_t offset = 0;
  for (const KernelTensor& tensor : WholeInputs()) {
    lines.push_back(fmt::format("  function(t.{}, {});", tensor.name, offset));
    staged.push_back(
        fmt::format("  t.{0} = reinterpret_cast<{1}*>(slot + {2});",
                    tensor.name, tensor.type, offset));
    offset += rows().chunk * ElementSize(tensor.place.dtype);
  }
  lines.emplace_back("}");
  Append(staged, &lines);
  Append({"  return t;", "}"}, &lines);
  return lines;
}

}  // namespace kiln
