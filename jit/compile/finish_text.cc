#include "jit/compile/finish_text.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "jit/compile/channel_text.h"
#include "jit/compile/conv_constants.h"
#include "jit/compile/conv_finish.h"
#include "jit/compile/element_index.h"
#include "jit/compile/held_text.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

// Vectors that a thread loads together. Those of a block's two warps are 12 KB
// on their way, beside 18 to 24 KB of its producers; the L1 has room for 28
// (docs/kernel-notes).
constexpr int64_t kMostAtOnce = 12;
// Half of that where more ops follow than these, by estimate: each element
// takes a while itself then, and six ops behind P4 would be 18 % more code of
// the whole kernel.
constexpr int64_t kMostOfLongChains = 6;
constexpr size_t kMaxOpsOfShortChains = 4;
// Of a thread, for addresses, a channel's parameters and what ops compute with.
// 24 would be enough for P4 and for a residual, 16 make P4 spill.
constexpr int64_t kRegistersBesideVectors = 32;
// Of results that are streamed: more than the L2 of an H100 or H200 holds.
constexpr int64_t kFewestStreamedBytes = int64_t{64} << 20;

// The tensors as elements see them: written are those that they store to, and
// what is read for channels is not among them.
std::vector<KernelTensor> SeenBy(const ElementCode& code,
                                 const std::vector<KernelTensor>& tensors,
                                 const std::vector<Place>& written) {
  std::vector<KernelTensor> seen;
  for (KernelTensor tensor : tensors) {
    const auto access = code.accesses().find(tensor.name);
    if (access == code.accesses().end() || IsOfChannel(access->second)) {
      continue;
    }
    tensor.is_output = std::find(written.begin(), written.end(),
                                 tensor.place) != written.end();
    seen.push_back(std::move(tensor));
  }
  return seen;
}

int64_t VectorsAtOnce(const Kernel& kernel,
                      const std::vector<KernelTensor>& seen) {
  const ConvGeometry& g = *kernel.conv;
  const int64_t registers = g.producer_registers() == 0
                                ? g.launch_registers()
                                : g.producer_registers();
  const int64_t read =
      std::count_if(seen.begin(), seen.end(), [](const KernelTensor& tensor) {
        return !tensor.is_output || tensor.is_read;
      });
  const int64_t fitting = (registers - kRegistersBesideVectors) /
                          (kFinishVector * std::max<int64_t>(read, 1));
  const bool is_short = kernel.group.finish.size() <= kMaxOpsOfShortChains;
  return std::clamp<int64_t>(fitting, 1,
                             is_short ? kMostAtOnce : kMostOfLongChains);
}

// Whether caches are to give up a result first: whoever reads it next does not
// find it there anyway.
bool IsStreamed(const TensorDesc& result) {
  return NumElements(result.dims) * ElementSize(result.dtype) >=
         kFewestStreamedBytes;
}

// Stores a value, or a float2 of two neighbours, to all places.
std::vector<std::string> StoreReadText(const Schedule& schedule,
                                       const Kernel& kernel, const Dims& domain,
                                       KernelTensors* tensors) {
  ElementCode code(schedule, domain, tensors);
  std::vector<std::string> written;
  std::string name;
  for (const Store& store : kernel.stores) {
    code.Define(store.value);
    name = code.NameOf(store.value);
    if (IsStreamed(schedule.lowered.values[store.value].desc)) {
      code.StreamTo(store, "inside");
    } else {
      code.StoreTo(store, "inside");
    }
    written.push_back(tensors->Write(store));
  }
  std::vector<std::string> lines = {
      "template <typename Value>",
      "static __device__ void StoreRead(const Tensors& t,",
      "                                 const kiln::Point<Index>& at,",
      fmt::format("                                 Value {}, bool inside) {{",
                  name)};
  for (const std::string& line : code.lines()) lines.push_back("  " + line);
  lines.insert(
      lines.end(),
      {"}", "static __device__ bool ArePairsAligned(const Tensors& t) {",
       fmt::format("  return kiln::ArePairsAligned({});",
                   fmt::join(written, ", ")),
       "}"});
  return lines;
}

}  // namespace

bool IsOfFinish(const Schedule& schedule, const Kernel& kernel,
                const Store& store) {
  const std::vector<int>& finish = kernel.group.finish;
  const int producer = schedule.lowered.values[store.value].producer;
  return std::find(finish.begin(), finish.end(), producer) != finish.end();
}

std::vector<std::string> FinishText(const Schedule& schedule,
                                    const Kernel& kernel,
                                    KernelTensors* tensors) {
  const KernelGroup& group = kernel.group;
  ElementCode code(schedule, group.domain, tensors);
  code.SeparateChannels();
  for (const int node : group.finish) {
    code.Compute(schedule.lowered.nodes[node]);
  }
  std::vector<Place> written;
  for (const Store& store : kernel.stores) {
    if (!IsOfFinish(schedule, kernel, store)) continue;
    code.StoreTo(store);
    written.push_back(store.place);
  }

  const bool is_wide =
      NumElements(group.domain) > std::numeric_limits<int32_t>::max();
  std::vector<std::string> body = {
      is_wide ? "using Index = long long;" : "using Index = int;",
      "using Tensors = Spec::Tensors;"};
  const auto append = [&](const std::vector<std::string>& lines) {
    body.insert(body.end(), lines.begin(), lines.end());
  };
  append(ShapeText("Output", group.domain));
  const std::vector<KernelTensor> seen = SeenBy(code, tensors->list(), written);
  append({IntsText("kVector", kFinishVector, "kAtOnce",
                   VectorsAtOnce(kernel, seen))});
  append(
      WriteHeld(code, seen, VectorAxisOf(group.domain, kFinishVector)).lines);
  append(ChannelText(code));
  append({"template <typename Fields, typename At>",
          "static __device__ void Element(Fields& t, const At& at,",
          "                               const Channel& channel) {"});
  for (const std::string& line : code.lines()) body.push_back("  " + line);
  body.push_back("}");

  std::vector<std::string> lines = {"struct Finish {"};
  for (const std::string& line : body) lines.push_back("  " + line);
  lines.push_back("};");
  return lines;
}

HeldFinishText WriteHeldFinish(const Schedule& schedule, const Kernel& kernel,
                               KernelTensors* tensors) {
  const KernelGroup& group = kernel.group;
  const std::vector<Node>& nodes = schedule.lowered.nodes;
  const int held = group.early_pooling < 0
                       ? ValueOf(nodes[group.tail].operands[0])
                       : nodes[group.early_pooling].results[0];
  const Dims& domain = schedule.lowered.values[held].desc.dims;
  ElementCode code(schedule, domain, tensors);
  code.SeparateChannels();
  code.Define(held);
  for (const int node : group.finish) code.Compute(nodes[node]);
  const int last = nodes[group.finish.back()].results[0];

  std::vector<std::string> body =
      ChannelText(code, "const kiln::Moments& state");
  body.insert(body.end(),
              {fmt::format("static __device__ float Value(float {},",
                           code.NameOf(held)),
               "                              const Channel& channel) {"});
  for (const std::string& line : code.lines()) body.push_back("  " + line);
  body.insert(body.end(),
              {fmt::format("  return {};", code.NameOf(last)), "}"});
  const std::vector<std::string> stores =
      StoreReadText(schedule, kernel, domain, tensors);
  body.insert(body.end(), stores.begin(), stores.end());

  HeldFinishText text;
  text.channel_bytes = ChannelBytes(code);
  text.lines.emplace_back("struct Finish {");
  for (const std::string& line : body) text.lines.push_back("  " + line);
  text.lines.emplace_back("};");
  return text;
}

}  // namespace kiln
