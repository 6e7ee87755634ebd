#include "jit/compile/held_text.h"

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/element_index.h"

namespace kiln {
namespace {

// A tensor that the code touches.
struct Member {
  const KernelTensor* tensor;
  std::string index;  // of its vectors; empty: a pointer
};

std::vector<Member> MembersOf(const ElementCode& code,
                              const std::vector<KernelTensor>& tensors,
                              VectorAxis axis) {
  std::vector<Member> members;
  for (const KernelTensor& tensor : tensors) {
    const auto access = code.accesses().find(tensor.name);
    if (access == code.accesses().end()) continue;
    const bool is_vector =
        access->second == "at.i" ||
        (axis == VectorAxis::kW && RunsWithW(access->second)) ||
        (axis == VectorAxis::kC && access->second == AxisOf(4, 1));
    members.push_back({&tensor, is_vector ? access->second : ""});
  }
  return members;
}

std::vector<std::string> StructText(const std::vector<Member>& members,
                                    const std::string& prefix) {
  std::vector<std::string> lines = {
      "// Neighbours that a thread holds in registers; else pointers.",
      "template <int kCount>", fmt::format("struct {}Held {{", prefix)};
  for (const Member& member : members) {
    const KernelTensor& tensor = *member.tensor;
    lines.push_back(
        member.index.empty()
            ? fmt::format("  const {}* {};", tensor.type, tensor.name)
            : fmt::format("  kiln::{}<{}, kCount> {};", HeldType(tensor),
                          tensor.type, tensor.name));
  }
  lines.push_back("};");
  return lines;
}

// The workspace is aligned; what callers bind may not be.
std::vector<std::string> AlignedText(const std::vector<Member>& members,
                                     const std::string& prefix) {
  std::string pointers;
  for (const Member& member : members) {
    if (member.index.empty() || member.tensor->place.slot < 0) continue;
    pointers += (pointers.empty() ? "t." : ", t.") + member.tensor->name;
  }
  const std::string aligned =
      pointers.empty() ? "true" : "kiln::AreAligned(" + pointers + ")";
  return {fmt::format("static __device__ bool Is{}Aligned(const Tensors&{}) {{",
                      prefix, pointers.empty() ? "" : " t"),
          "  return " + aligned + ";", "}"};
}

std::string Spaces(size_t count) { return std::string(count, ' '); }

std::vector<std::string> FetchText(const std::vector<Member>& members,
                                   const std::string& prefix, bool streams) {
  const std::string head = "static __device__ void Fetch" + prefix + "Held(";
  std::vector<std::string> lines = {
      "template <int kCount>", head + "const Tensors& t,",
      Spaces(head.size()) + "const kiln::Point<Index>& at,",
      Spaces(head.size()) + "bool is_aligned,",
      Spaces(head.size()) + prefix + "Held<kCount>* held) {"};
  for (const Member& member : members) {
    const std::string& name = member.tensor->name;
    if (member.index.empty()) {
      lines.push_back(fmt::format("  held->{0} = t.{0};", name));
    } else if (!member.tensor->is_output || member.tensor->is_read) {
      lines.push_back(fmt::format(
          "  kiln::{}(t.{}, {}, is_aligned, &held->{});",
          streams && member.index == "at.i" ? "Fetch<true>" : "Fetch", name,
          member.index, name));
    }
  }
  lines.push_back("}");
  return lines;
}

std::vector<std::string> PutText(const std::vector<Member>& members) {
  std::vector<std::string> lines = {
      "template <int kCount>",
      "static __device__ void PutHeld(const Held<kCount>& held,",
      "                               const kiln::Point<Index>& at,",
      "                               bool is_aligned, const Tensors& t) {"};
  for (const Member& member : members) {
    if (!member.tensor->is_output || member.tensor->is_kept) continue;
    lines.push_back(
        fmt::format("  kiln::Put(held.{0}, is_aligned, t.{0}, {1});",
                    member.tensor->name, member.index));
  }
  lines.push_back("}");
  return lines;
}

std::vector<std::string> KeptText(const KernelTensor& tensor) {
  return {"template <int kCount>",
          "static __device__ const auto& KeptOf(const Held<kCount>& held) {",
          fmt::format("  return held.{};", tensor.name), "}"};
}

}  // namespace

std::string_view HeldType(const KernelTensor& tensor) {
  return tensor.is_output && !tensor.is_read ? "Results" : "Vector";
}

VectorAxis VectorAxisOf(const Dims& domain, int64_t width) {
  const Dims4 dims = AlignDims(domain);
  if (dims[3] % width == 0) return VectorAxis::kW;
  const bool are_single = dims[2] * dims[3] == 1;
  return are_single && dims[1] % width == 0 ? VectorAxis::kC
                                            : VectorAxis::kNone;
}

HeldText WriteHeld(const ElementCode& code,
                   const std::vector<KernelTensor>& tensors, VectorAxis axis,
                   const std::string& prefix, bool streams) {
  const std::vector<Member> members = MembersOf(code, tensors, axis);
  HeldText text;
  const auto add = [&](const std::vector<std::string>& lines) {
    text.lines.insert(text.lines.end(), lines.begin(), lines.end());
  };
  add(StructText(members, prefix));
  add(AlignedText(members, prefix));
  add(FetchText(members, prefix, streams));
  const bool writes = std::any_of(
      members.begin(), members.end(),
      [](const Member& member) { return member.tensor->is_output; });
  if (writes) add(PutText(members));
  for (const Member& member : members) {
    if (member.tensor->is_kept) add(KeptText(*member.tensor));
  }
  text.any_vector =
      std::any_of(members.begin(), members.end(),
                  [](const Member& member) { return !member.index.empty(); });
  return text;
}

}  // namespace kiln
