// Longer than 400 lines because one class writes all parts of a chain's Spec.
#include "jit/compile/row_chain_spec.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/reduce_geometry.h"
#include "jit/compile/rounding.h"
#include "jit/compile/row_chains.h"
#include "jit/compile/row_held.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

// On a multiprocessor, for which registers must suffice: 128 for each.
constexpr int kMinThreads = 512;
constexpr int kMinThreadsOfOnePass = 1024;  // the same where none is kept
constexpr int kMergeThreads = 256;  // as many as a row has blocks, or more
constexpr int64_t kWordBytes = 4;
// Of the states of one pass, for which a thread has registers: of a row, and
// of each of several that lie side by side.
constexpr int64_t kMaxPassWords = 24;
constexpr int64_t kMaxPassWordsAbreast = 3;

// Ten instructions and more: registers hold what they give for those who need
// it again.
bool IsLong(OpKind op) {
  switch (op) {
    case OpKind::kElu:
    case OpKind::kExp:
    case OpKind::kGelu:
    case OpKind::kMish:
    case OpKind::kSigmoid:
    case OpKind::kSilu:
    case OpKind::kSoftmax:
    case OpKind::kSoftplus:
    case OpKind::kTanh:
      return true;
    default:
      return false;
  }
}

class RowChainSpecWriter {
 public:
  RowChainSpecWriter(const Schedule& schedule, const Kernel& kernel)
      : schedule_(schedule),
        kernel_(kernel),
        rows_(*kernel.rows),
        nodes_(kernel.group.Nodes()),
        values_(schedule.lowered, kernel.group),
        tensors_(schedule, kernel),
        element_(schedule, kernel.group.domain, &tensors_),
        row_element_(schedule, RowDomain(), &tensors_) {
    for (int link = 0; link < values_.count(); ++link) {
      values_of_.push_back(std::make_unique<ElementCode>(
          schedule, kernel.group.domain, &tensors_));
      of_rows_.emplace_back(schedule, kernel.group.domain, &tensors_);
    }
  }

  KernelSpec Run() && {
    NameRowValues();
    NameDivisors();
    if (IsInRegisters()) FindMade();
    for (int link = 0; link < values_.count(); ++link) FillLink(link);
    AddPasses();
    FillElement();
    FillRowElement();
    const RowHeld held(kernel_, tensors_, ReadCodes(), element_);
    AddConstants(held);
    AddStatistics();
    AddLines(held.Lines());
    if (!IsInRegisters()) AddLines(held.KeptLines());
    AddLines(link_lines_);
    AddLines(row_function_);
    AddEntry();
    for (const int node : nodes_) spec_.formula.push_back(NodeAt(node).text);
    if (rows_.splits) {
      tensors_.Add({"partials", "float", true, *kernel_.partials});
    }
    spec_.tensors = tensors_.list();
    spec_.is_vectorised = true;
    return std::move(spec_);
  }

 private:
  bool IsInRegisters() const { return rows_.is_warp_chain(); }
  const Node& NodeAt(int index) const { return schedule_.lowered.nodes[index]; }
  const LoweredValue& ValueAt(int index) const {
    return schedule_.lowered.values[index];
  }
  const Node& LinkAt(int link) const { return NodeAt(values_.links()[link]); }

  void Constant(const std::string& line) { spec_.constants.push_back(line); }
  void AddLines(const std::vector<std::string>& lines) {
    spec_.members.insert(spec_.members.end(), lines.begin(), lines.end());
  }

  std::vector<const ElementCode*> ReadCodes() const {
    std::vector<const ElementCode*> codes;
    for (const auto& code : values_of_) codes.push_back(code.get());
    return codes;
  }

  // The extents of a row's results, one number for each row.
  Dims RowDomain() const { return {kernel_.rows->rows}; }

  bool IsOfRow(int value) const { return values_.LinkOf(value) >= 0; }

  // Each number of a row is a field of Spec::Statistics.
  void NameRowValues() {
    for (const int node : nodes_) {
      for (const int result : NodeAt(node).results) {
        if (!IsOfRow(result)) continue;
        fields_.push_back(ValueAt(result).name);
        const std::string text = "row." + ValueAt(result).name;
        element_.DefineAs(result, text);
        row_element_.DefineAs(result, text);
        for (const auto& code : values_of_) code->DefineAs(result, text);
      }
    }
  }

  // What elements are divided by is prepared once for a row.
  void NameDivisors() {
    for (const int node : nodes_) {
      if (NodeAt(node).op != OpKind::kDiv) continue;
      const int value = ValueOf(NodeAt(node).operands[1]);
      if (!IsOfRow(value) || IsOfRow(NodeAt(node).results[0])) continue;
      divisors_.insert(value);
      const std::string text = DivisorOf(value);
      element_.DefineDivisor(value, "row." + text);
      for (const auto& code : values_of_) {
        code->DefineDivisor(value, "row." + text);
      }
    }
  }

  std::string DivisorOf(int value) const {
    return ValueAt(value).name + "_divisor";
  }

  // Of elements that a link's function computes by long ops, and a later one
  // needs, another link's or that behind all: the link.
  void FindMade() {
    std::map<int, int> makers;
    for (int link = 0; link < values_.count(); ++link) {
      FindMade(link, {ValueOf(LinkAt(link).operands[0])}, &makers);
    }
    FindMade(values_.count(), StoredElements(), &makers);
  }

  void FindMade(int function, const std::vector<int>& roots,
                std::map<int, int>* makers) {
    const Walk walk =
        WalkBack(roots, [&](int result) { return makers->count(result) > 0; });
    for (const int result : walk.found) made_.insert(*makers->find(result));
    for (const int index : walk.nodes) {
      const Node& node = NodeAt(index);
      const bool is_of_long = std::any_of(
          node.operands.begin(), node.operands.end(),
          [&](const Operand& operand) {
            const auto made = makers->find(ValueOf(operand));
            return made != makers->end() && made->second == function;
          });
      if (IsLong(node.op) || is_of_long) {
        makers->emplace(node.results[0], function);
      }
    }
  }

  // What elements are computed of, from the values that are wanted back.
  struct Walk {
    std::vector<int> nodes;  // in order
    std::set<int> found;     // results that need not be computed
    std::set<int> needed;    // all values, those of rows among them
  };

  template <typename IsThere>
  Walk WalkBack(const std::vector<int>& roots, const IsThere& is_there) const {
    Walk walk;
    walk.needed.insert(roots.begin(), roots.end());
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      const int result = NodeAt(*node).results[0];
      if (walk.needed.count(result) == 0 || IsOfRow(result)) continue;
      if (is_there(result)) {
        walk.found.insert(result);
        continue;
      }
      walk.nodes.insert(walk.nodes.begin(), *node);
      for (const Operand& operand : NodeAt(*node).operands) {
        walk.needed.insert(ValueOf(operand));
      }
    }
    return walk;
  }

  // Elements that are stored.
  std::vector<int> StoredElements() const {
    std::vector<int> stored;
    for (const Store& store : kernel_.stores) {
      if (!IsOfRow(store.value)) stored.push_back(store.value);
    }
    return stored;
  }

  // Computes the elements that make `roots`, but for those that functions
  // before this one have made; the last link that they need.
  int ComputeElements(int function, const std::vector<int>& roots,
                      ElementCode* code) {
    const Walk walk = WalkBack(roots, [&](int result) {
      const auto made = made_.find(result);
      return made != made_.end() && made->second < function;
    });
    for (const int result : walk.found) {
      code->DefineAs(result, "made." + ValueAt(result).name);
    }
    for (const int node : walk.nodes) {
      code->Compute(NodeAt(node));
      const int result = NodeAt(node).results[0];
      if (made_.count(result) == 0) continue;
      code->Line(fmt::format("made.{} = {};", ValueAt(result).name,
                             code->Local(result)));
    }
    int last = -1;
    for (const int value : walk.needed)
      last = std::max(last, values_.LinkOf(value));
    return last;
  }

  // Members of the reduction: StateOf, Value and Finish.
  void FillLink(int link) {
    const Node& node = LinkAt(link);
    const int input = ValueOf(node.operands[0]);
    ElementCode* const code = values_of_[link].get();
    last_needed_.push_back(ComputeElements(link, {input}, code));
    const std::string value = code->Local(input);
    const std::string tag = fmt::format("kiln::Link<{}>", link);
    link_lines_.push_back(fmt::format("static __device__ kiln::{} StateOf({});",
                                      ReducerName(node.op), tag));
    link_lines_.push_back(fmt::format(
        "static constexpr __device__ int BlocksOf({}) {{ return {}; }}", tag,
        BlocksOf(node)));
    link_lines_.emplace_back("template <typename Fields, typename At>");
    link_lines_.emplace_back(
        "static __device__ float Value(Fields& t, const At& at,");
    const char* const made = IsInRegisters() ? "Made& made, " : "";
    link_lines_.push_back(
        fmt::format("                              const Statistics& row, "
                    "{}{}) {{",
                    made, tag));
    for (const std::string& line : code->lines())
      link_lines_.push_back("  " + line);
    link_lines_.push_back(fmt::format("  return {};", value));
    link_lines_.emplace_back("}");
    FillFinish(link, tag);
  }

  void AddPasses() {
    if (IsInRegisters()) return;
    for (int link = 0; link < values_.count(); ++link) {
      link_lines_.push_back(fmt::format(
          "static constexpr __device__ int EndOfPass(kiln::Link<{}>) {{ "
          "return {}; }}",
          link, EndOfPass(link)));
    }
  }

  // Elements that the reduction is of.
  int64_t StepsOf(const Node& link) const {
    return ViewOf(link, ValueAt(ValueOf(link.operands[0])).desc.dims).steps();
  }
  // Of a cluster: those that have them.
  int64_t BlocksOf(const Node& link) const {
    return StepsOf(link) * rows_.cluster / rows_.length;
  }

  void FillFinish(int link, const std::string& tag) {
    const Node& node = LinkAt(link);
    ElementCode& code = of_rows_[link];
    const std::vector<std::string> results =
        ReducerResults(node, StepsOf(node));
    std::vector<int> made;
    for (size_t i = 0; i < results.size(); ++i) {
      code.Assign(ValueAt(node.results[i]).name, results[i]);
      code.DefineAs(node.results[i], ValueAt(node.results[i]).name);
      made.push_back(node.results[i]);
    }
    ComputeOfRow(link, &code, &made);
    link_lines_.push_back(
        fmt::format("static __device__ void Finish(const kiln::{}& "
                    "state, {},",
                    ReducerName(node.op), tag));
    link_lines_.emplace_back(
        "                              Statistics* row) {");
    for (const std::string& line : code.lines())
      link_lines_.push_back("  " + line);
    for (const int value : made) {
      const std::string& name = ValueAt(value).name;
      link_lines_.push_back(fmt::format("  row->{0} = {0};", name));
      if (divisors_.count(value) == 0) continue;
      link_lines_.push_back(fmt::format("  row->{} = kiln::DivisorOf({});",
                                        DivisorOf(value), name));
    }
    link_lines_.emplace_back("}");
  }

  // What is computed of rows alone as soon as the reduction is there.
  void ComputeOfRow(int link, ElementCode* code, std::vector<int>* made) {
    for (const int node : nodes_) {
      const int result = NodeAt(node).results[0];
      if (NodeAt(node).kind == NodeKind::kReduce ||
          values_.LinkOf(result) != link) {
        continue;
      }
      for (const Operand& operand : NodeAt(node).operands) {
        const int value = ValueOf(operand);
        if (value < 0 || values_.LinkOf(value) == link) continue;
        code->DefineAs(value, "row->" + ValueAt(value).name);
      }
      code->Compute(NodeAt(node));
      code->DefineAs(result, ValueAt(result).name);
      made->push_back(result);
    }
  }

  void FillElement() {
    const std::vector<int> stored = StoredElements();
    ComputeElements(values_.count(), stored, &element_);
    for (const Store& store : kernel_.stores) {
      if (!IsOfRow(store.value)) element_.StoreTo(store);
    }
    spec_.has_element = !stored.empty();
    spec_.element_body = element_.lines();
    spec_.element_argument = IsInRegisters()
                                 ? "const Statistics& row, const Made& made"
                                 : "const Statistics& row";
  }

  void FillRowElement() {
    for (const Store& store : kernel_.stores) {
      if (IsOfRow(store.value)) row_element_.StoreTo(store);
    }
    if (row_element_.lines().empty()) return;
    row_function_ = {
        "static __device__ void RowElement(const Tensors& t,",
        "                                  const kiln::Point<Index>& at,",
        "                                  const Statistics& row) {"};
    for (const std::string& line : row_element_.lines()) {
      row_function_.push_back("  " + line);
    }
    row_function_.emplace_back("}");
  }

  void AddConstants(const RowHeld& held) {
    spec_.index = RowIndexType(rows_.rows * rows_.length);
    for (const auto& [name, dims] :
         {std::pair<std::string, Dims>{"Domain", kernel_.group.domain},
          std::pair<std::string, Dims>{"RowDomain", RowDomain()}}) {
      for (const std::string& line : ShapeText(name, dims)) Constant(line);
    }
    Constant(
        fmt::format("static constexpr Index kRows = {}, kRowLength = {}, "
                    "kPitch = {}, kRun = {};",
                    rows_.rows, rows_.length, rows_.pitch,
                    rows_.run > 0 ? rows_.run : rows_.length));
    Constant(
        fmt::format("static constexpr int kVector = {}, kThreads = {}, "
                    "kLanes = {};",
                    rows_.vector, rows_.threads, rows_.lanes));
    Constant(fmt::format("static constexpr int kLinks = {}, kCluster = {};",
                         values_.count(), rows_.cluster));
    if (!IsInRegisters()) AddSharedConstants(held);
    Constant(
        fmt::format("static constexpr bool kWritesElements = {}, "
                    "kWritesRows = {};",
                    spec_.has_element, !row_function_.empty()));
    Constant(fmt::format("static constexpr bool kBackwards = {};",
                         kernel_.backwards));
  }

  void AddSharedConstants(const RowHeld& held) {
    Constant(fmt::format("static constexpr int kAtOnce = {};", rows_.at_once));
    Constant(
        fmt::format("static constexpr int kStateWords = {};", StateWords()));
    Constant(fmt::format("static constexpr int kKeptBytes = {}, kPlaces = {};",
                         held.KeptBytes(), Places()));
    Constant(
        fmt::format("static constexpr bool kKeeps = {}, kDynamicShared = {}, "
                    "kStreams = {}, kSplits = {};",
                    rows_.kept_bytes > 0, rows_.dynamic_shared_bytes > 0,
                    rows_.streams, rows_.splits));
    if (rows_.splits) {
      Constant(fmt::format("static constexpr int kMergeThreads = {};",
                           kMergeThreads));
    }
  }

  int64_t StateWords(int link) const {
    return ReducerStateBytes(LinkAt(link)) / kWordBytes;
  }

  // Of the pass with the most.
  int64_t StateWords() const {
    int64_t most = 0;
    for (int link = 0; link < values_.count();) {
      int64_t words = 0;
      const int end = EndOfPass(link);
      while (link < end) words += StateWords(link++);
      most = std::max(most, words);
    }
    return most;
  }

  // One behind the last link that is taken together with `first`: up to there,
  // none needs numbers that another gives, and all are of the same elements.
  int EndOfPass(int first) const {
    const bool is_one_pass = rows_.kept_bytes == 0;
    const int64_t most = rows_.pitch > 1 ? kMaxPassWordsAbreast : kMaxPassWords;
    int64_t words = StateWords(first);
    int end = first + 1;
    for (; end < values_.count(); ++end) {
      words += StateWords(end);
      if (!is_one_pass && words > most) break;
      if (BlocksOf(LinkAt(end)) != BlocksOf(LinkAt(first))) break;
      if (last_needed_[end] >= first) break;
    }
    return end;
  }

  // Elements of each tensor that a block keeps.
  int64_t Places() const {
    const int64_t along = rows_.pitch > 1 ? 1 : rows_.vector;
    const int64_t stride = rows_.lanes * along;
    const int64_t steps = CeilDiv(rows_.length / rows_.cluster, stride);
    return steps * rows_.threads * rows_.vector;
  }

  void AddStatistics() {
    std::vector<std::string> lines = {
        "struct Statistics {",
        fmt::format("  float {};", fmt::join(fields_, ", "))};
    for (const int value : divisors_) {
      lines.push_back(fmt::format("  kiln::Divisor {};", DivisorOf(value)));
    }
    lines.emplace_back("};");
    AddLines(lines);
    if (IsInRegisters()) AddMade();
  }

  // What functions hold of an element for those behind them.
  void AddMade() {
    std::vector<std::string> lines = {"struct Made {"};
    for (const auto& [value, function] : made_) {
      lines.push_back(fmt::format("  float {};", ValueAt(value).name));
    }
    lines.emplace_back("};");
    AddLines(lines);
  }

  void AddEntry() {
    EntrySpec entry;
    if (IsInRegisters()) {
      spec_.source_file = "row_warp_chain.cu";
      entry.symbol = "kiln_row_warp_chain";
      entry.function = "kiln::RowWarpChain";
    } else {
      spec_.source_file = "row_chain.cu";
      entry.symbol = "kiln_row_chain";
      entry.function = "kiln::RowChain";
    }
    entry.grid = {static_cast<uint32_t>(rows_.blocks()), 1, 1};
    if (!rows_.splits) {
      entry.cluster = {static_cast<uint32_t>(rows_.cluster), 1, 1};
    }
    entry.threads = rows_.threads;
    entry.dynamic_shared_bytes = rows_.dynamic_shared_bytes;
    const bool is_one_pass = !IsInRegisters() && rows_.kept_bytes == 0;
    const int threads = is_one_pass ? kMinThreadsOfOnePass : kMinThreads;
    entry.min_blocks = std::max(1, threads / rows_.threads);
    spec_.entries.push_back(std::move(entry));
    if (rows_.splits) AddMerge();
  }

  void AddMerge() {
    EntrySpec merge;
    merge.symbol = "kiln_merge_chain";
    merge.function = "kiln::MergeChain";
    merge.threads = kMergeThreads;
    const int64_t blocks = CeilDiv(rows_.rows * rows_.cluster, kMergeThreads);
    merge.grid = {static_cast<uint32_t>(blocks), 1, 1};
    spec_.entries.push_back(std::move(merge));
  }

  const Schedule& schedule_;
  const Kernel& kernel_;
  const RowGeometry& rows_;
  const std::vector<int> nodes_;
  const RowValues values_;
  KernelTensors tensors_;
  std::vector<std::unique_ptr<ElementCode>> values_of_;  // each link's values
  std::vector<ElementCode> of_rows_;  // what is behind each link
  ElementCode element_;
  ElementCode row_element_;
  KernelSpec spec_;
  std::vector<std::string> fields_;  // of Spec::Statistics
  std::set<int> divisors_;           // of them, that elements are divided by
  std::map<int, int> made_;          // see FindMade
  std::vector<std::string> link_lines_;  // the links' members
  std::vector<int> last_needed_;  // of each link, the last that it needs; or -1
  std::vector<std::string> row_function_;
};

}  // namespace

KernelSpec MakeRowChainSpec(const Schedule& schedule, const Kernel& kernel) {
  return RowChainSpecWriter(schedule, kernel).Run();
}

}  // namespace kiln
