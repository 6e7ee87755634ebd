#include <string_view>

#include "tests/ptx/instruction.h"

namespace kiln::ptx {
namespace {

const OperationTable& AllOperations() {
  static const OperationTable& table = *[] {
    auto* const all = new OperationTable;
    AddIntegerOperations(all);
    AddFloatOperations(all);
    AddHalfOperations(all);
    AddComparisons(all);
    AddConversions(all);
    AddMemoryOperations(all);
    AddBulkOperations(all);
    AddWarpOperations(all);
    AddProducts(all);
    return all;
  }();
  return table;
}

// Without what says how and by whom memory is seen, and how it is cached. The
// polls of others' memory are marked by "poll." in front.
std::string PlainAccess(const std::string& opcode) {
  bool polls = false;
  std::string plain;
  for (size_t at = 0; at < opcode.size();) {
    size_t end = opcode.find('.', at);
    if (end == opcode.npos) end = opcode.size();
    const std::string part = opcode.substr(at, end - at);
    at = end + 1;
    const bool orders = part == "relaxed" || part == "acquire" ||
                        part == "volatile" || part == "acq_rel" ||
                        part == "release";
    polls |= orders;
    if (orders || part == "gpu" || part == "cta" || part == "sys" ||
        part == "cluster" || part == "weak" || part == "nc" || part == "cs" ||
        part.starts_with("L1::") || part.starts_with("L2::")) {
      continue;
    }
    plain += (plain.empty() ? "" : ".") + part;
  }
  return polls && plain.starts_with("ld") ? "poll." + plain : plain;
}

const Operation* FindAccess(const std::string& opcode, bool wide) {
  static OperationTable& polls = *new OperationTable;
  std::string name = PlainAccess(opcode);
  const bool is_poll = name.starts_with("poll.");
  if (is_poll) name = name.substr(5);
  const OperationTable& all = AllOperations();
  auto found = all.find(name + (wide ? "/wide" : ""));
  if (found == all.end()) found = all.find(name);
  if (found == all.end()) return nullptr;
  if (!is_poll) return &found->second;
  Operation& poll = polls[found->first];
  poll = found->second;
  poll.flow = Flow::kPoll;
  return &poll;
}

}  // namespace

const Operation* FindOperation(const std::string& opcode, bool wide) {
  const OperationTable& all = AllOperations();
  if (opcode.starts_with("ld.") || opcode.starts_with("st.") ||
      opcode.starts_with("atom.")) {
    return FindAccess(opcode, wide);
  }
  const auto found = all.find(opcode);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace kiln::ptx
