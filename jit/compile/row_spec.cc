// Longer than 400 lines because one class writes the members of one Spec.
#include "jit/compile/row_spec.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/row_held.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

// Of row_team.cu, beside the finishers.
constexpr int kTeamThreads = 480;
// On a multiprocessor, for which registers must suffice: 64 for each, or 80
// where they hold the rows.
constexpr int kMinThreads = 1024;
constexpr int kMinWarpThreads = 768;

class RowSpecWriter {
 public:
  RowSpecWriter(const Schedule& schedule, const Kernel& kernel)
      : schedule_(schedule),
        kernel_(kernel),
        rows_(*kernel.rows),
        anchor_(schedule.lowered.nodes[kernel.group.anchor]),
        input_(ValueOf(anchor_.operands[0])),
        tensors_(schedule, kernel),
        read_(schedule, kernel.group.domain, &tensors_),
        row_(schedule, kernel.group.domain, &tensors_),
        element_(schedule, kernel.group.domain, &tensors_),
        tail_(schedule, TailDomain(), &tensors_),
        held_(kernel, tensors_, {&read_}, element_) {}

  KernelSpec Run() && {
    FillRead();
    FillElement();
    AddConstants();
    AddStatistics();
    AddMembers(held_.Lines());
    if (IsTeam()) {
      Constant(fmt::format("static constexpr int kLoadedBytes = {};",
                           held_.StagedBytes()));
      AddMembers(held_.StagingLines());
    } else {
      AddKept();
    }
    if (HasTail()) AddTail();
    AddEntry();
    spec_.formula = Formula();
    spec_.tensors = tensors_.list();
    spec_.is_vectorised = true;
    return std::move(spec_);
  }

 private:
  bool IsTeam() const { return rows_.keeper == RowKeeper::kTeam; }
  const Node& NodeAt(int index) const { return schedule_.lowered.nodes[index]; }
  const LoweredValue& ValueAt(int index) const {
    return schedule_.lowered.values[index];
  }

  void Constant(const std::string& line) { spec_.constants.push_back(line); }
  void Member(const std::string& line) { spec_.members.push_back(line); }
  void AddMembers(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) Member(line);
  }

  std::vector<std::string> Formula() const {
    std::vector<std::string> lines;
    for (const int node : kernel_.group.prologue) {
      lines.push_back(NodeAt(node).text);
    }
    lines.push_back(anchor_.text);
    for (const int node : kernel_.group.epilogue) {
      lines.push_back(NodeAt(node).text);
    }
    if (HasTail()) lines.push_back(Tail().text);
    for (const int node : kernel_.group.tail_epilogue) {
      lines.push_back(NodeAt(node).text);
    }
    return lines;
  }

  // The nodes of the prologue that make `roots`, but for what makes
  // `boundary`; in order.
  std::vector<int> Makers(std::vector<int> roots, int boundary) const {
    std::vector<int> makers;
    const std::vector<int>& prologue = kernel_.group.prologue;
    for (auto node = prologue.rbegin(); node != prologue.rend(); ++node) {
      const int result = NodeAt(*node).results[0];
      if (result == boundary) continue;
      if (std::find(roots.begin(), roots.end(), result) == roots.end()) {
        continue;
      }
      makers.insert(makers.begin(), *node);
      for (const Operand& operand : NodeAt(*node).operands) {
        roots.push_back(ValueOf(operand));
      }
    }
    return makers;
  }

  void FillRead() {
    for (const int node : Makers({input_}, -1)) read_.Compute(NodeAt(node));
    spec_.reads_elements = true;
    spec_.read_result = read_.Local(input_);
    spec_.read_body = read_.lines();
  }

  void FillElement() {
    if (!KeepsPowers()) element_.Define(input_);
    for (const int result : anchor_.results) AddToRow(result);
    std::vector<int> roots;
    for (const int node : kernel_.group.epilogue) {
      for (const Operand& operand : NodeAt(node).operands) {
        roots.push_back(ValueOf(operand));
      }
    }
    if (HasTail()) {
      roots.push_back(TailInput());
    } else {
      for (const Store& store : kernel_.stores) roots.push_back(store.value);
    }
    for (const int node : Makers(roots, input_)) {
      element_.Compute(NodeAt(node));
    }
    for (const int node : kernel_.group.epilogue) {
      if (HoldsReciprocal() && IsSoftmax(NodeAt(node))) {
        AddShare(NodeAt(node).results[0]);
      } else {
        AddToElement(NodeAt(node));
      }
    }
    const std::string argument =
        fmt::format("float {}, const Statistics& row",
                    KeepsPowers() ? "power" : ValueAt(input_).name);
    if (HasTail()) {
      FillValue(argument);
      FillTail();
      return;
    }
    for (const Store& store : kernel_.stores) element_.StoreTo(store);
    spec_.element_body = element_.lines();
    spec_.element_argument = argument;
  }

  // What is computed of the statistics alone is computed once for a row. What
  // else a whole row has in common is a local like any other, which the
  // compiler moves out of loops.
  void AddToElement(const Node& node) {
    const int result = node.results[0];
    if (IsOfRow(node)) {
      row_.Compute(node);
      AddToRow(result);
      return;
    }
    if (node.op == OpKind::kDiv) DivideByRow(ValueOf(node.operands[1]));
    element_.Compute(node);
    if (ValueAt(result).desc.dims != kernel_.group.domain) {
      element_.DefineAs(result, element_.NameOf(result));
    }
  }

  bool IsOfRow(const Node& node) const {
    return std::all_of(node.operands.begin(), node.operands.end(),
                       [&](const Operand& operand) {
                         const int value = ValueOf(operand);
                         return value < 0 || of_row_.count(value) > 0;
                       });
  }

  // Makes `value` a field of Spec::Statistics.
  void AddToRow(int value) {
    of_row_.insert(value);
    const std::string name = ValueAt(value).name;
    fields_.push_back(name);
    row_.DefineAs(value, name);
    element_.DefineAs(value, "row." + name);
  }

  void DivideByRow(int value) {
    if (of_row_.count(value) == 0) return;
    const std::string name = ValueAt(value).name;
    element_.DefineDivisor(value, fmt::format("row.{}_divisor", name));
    if (std::find(divisors_.begin(), divisors_.end(), name) ==
        divisors_.end()) {
      divisors_.push_back(name);
    }
  }

  bool HasTail() const { return kernel_.group.tail >= 0; }
  const Node& Tail() const { return NodeAt(kernel_.group.tail); }
  int TailInput() const { return ValueOf(Tail().operands[0]); }
  Dims TailDomain() const {
    return HasTail() ? ValueAt(Tail().results[0]).desc.dims : Dims{};
  }

  // Spec::Value: the element of which the tail is taken.
  void FillValue(const std::string& argument) {
    const std::string value = element_.Local(TailInput());
    value_ = {"template <typename Fields, typename At>",
              "static __device__ float Value(Fields& t, const At& at,",
              fmt::format("                              {}) {{", argument)};
    for (const std::string& line : element_.lines()) {
      value_.push_back("  " + line);
    }
    value_.push_back(fmt::format("  return {};", value));
    value_.emplace_back("}");
  }

  // Spec::Element: an output of the tail.
  void FillTail() {
    const std::vector<std::string> results =
        ReducerResults(Tail(), rows_.segment);
    const int result = Tail().results[0];
    tail_.Assign(ValueAt(result).name, results[0]);
    tail_.Define(result);
    for (const int node : kernel_.group.tail_epilogue) {
      tail_.Compute(NodeAt(node));
    }
    for (const Store& store : kernel_.stores) tail_.StoreTo(store);
    spec_.element_body = tail_.lines();
    spec_.element_argument = "const SegmentReducer& state";
  }

  void AddTail() {
    for (const std::string& line : ShapeText("TailOutput", TailDomain())) {
      Constant(line);
    }
    Constant(
        fmt::format("static constexpr int kSegment = {}, "
                    "kSegmentLanes = {};",
                    rows_.segment, rows_.segment_lanes));
    Constant(fmt::format("static constexpr int kSegmentVector = {};",
                         rows_.segment_vector));
    Constant(fmt::format("using SegmentReducer = kiln::{};",
                         ReducerName(Tail().op)));
    AddMembers(value_);
  }

  // The node that uses the anchor's statistics, and not another softmax.
  bool IsSoftmax(const Node& node) const {
    return node.op == OpKind::kSoftmax &&
           ValueOf(node.operands[1]) == anchor_.results[0];
  }

  // Softmax of the power that is kept in the element's stead, or is computed of
  // it again: the statistics hold the reciprocal of the sum, which is between
  // 1 / length and 1.
  void AddShare(int result) {
    const std::string power =
        KeepsPowers()
            ? "power"
            : fmt::format("kiln::Exp({} - row.{})", ValueAt(input_).name,
                          ValueAt(anchor_.results[0]).name);
    element_.Assign(
        ValueAt(result).name,
        fmt::format("{} * row.{}", power, ValueAt(anchor_.results[1]).name));
    element_.Define(result);
  }

  // Whether powers are computed for the sum, and once more for the results.
  bool TakesPowersAgain() const {
    return anchor_.op == OpKind::kSoftmax && rows_.reads_again;
  }
  bool HoldsReciprocal() const { return KeepsPowers() || TakesPowersAgain(); }

  // Whether e^(x - largest) may take the place of x: nothing but the softmax
  // itself uses x.
  bool KeepsPowers() const {
    if (IsTeam() || anchor_.op != OpKind::kSoftmax) return false;
    if (TakesPowersAgain()) return false;
    for (const Store& store : kernel_.stores) {
      if (store.value == input_) return false;
    }
    if (HasTail() && TailInput() == input_) return false;
    std::vector<int> nodes = kernel_.group.epilogue;
    nodes.insert(nodes.end(), kernel_.group.prologue.begin(),
                 kernel_.group.prologue.end());
    return std::none_of(nodes.begin(), nodes.end(), [&](int index) {
      const Node& node = NodeAt(index);
      return !IsSoftmax(node) && node.Reads(input_);
    });
  }

  void AddConstants() {
    spec_.index = RowIndexType(rows_.rows * rows_.length);
    for (const std::string& line : ShapeText("Domain", kernel_.group.domain)) {
      Constant(line);
    }
    Constant(fmt::format("static constexpr Index kRows = {}, kRowLength = {};",
                         rows_.rows, rows_.length));
    Constant(fmt::format("static constexpr int kVector = {};", rows_.vector));
    Constant(fmt::format("static constexpr bool kBackwards = {};",
                         kernel_.backwards));
    if (IsTeam()) {
      Constant(
          fmt::format("static constexpr int kTeam = {}, kTeams = {}, "
                      "kChunks = {}, kChunk = {};",
                      rows_.team, rows_.teams, rows_.chunks, rows_.chunk));
      Constant(fmt::format("static constexpr int kSlots = {}, kSlotBytes = {};",
                           rows_.slots, rows_.slot_bytes));
      Constant(
          fmt::format("static constexpr int kRowGroups = {}, kAtOnce = {}, "
                      "kFinisherWarps = {}, kFinishedAtOnce = {};",
                      rows_.row_groups, rows_.at_once, rows_.finishers,
                      rows_.finished_at_once));
    } else {
      Constant(
          fmt::format("static constexpr int kThreads = {}, kLanes = {}, "
                      "kCluster = {};",
                      rows_.threads, rows_.lanes, rows_.cluster));
      if (rows_.keeper != RowKeeper::kWarp) {
        Constant(
            fmt::format("static constexpr int kAtOnce = {};", rows_.at_once));
        Constant(fmt::format("static constexpr bool kDynamicShared = {};",
                             rows_.dynamic_shared_bytes > 0));
      }
      if (rows_.keeper == RowKeeper::kBlock) AddTurns();
    }
    if (rows_.pitch > 1) {
      Constant(fmt::format("static constexpr Index kPitch = {};", rows_.pitch));
    }
    Constant(fmt::format("using Reducer = kiln::{};", ReducerName(anchor_.op)));
  }

  void AddTurns() {
    Constant(
        fmt::format("static constexpr unsigned kTurns = {};", rows_.turns));
    if (rows_.turns == 1) return;
    Constant(
        fmt::format("static constexpr unsigned kTurnBlocks = {}, "
                    "kTurnCycles = {};",
                    rows_.turn_blocks, rows_.turn_cycles));
  }

  // Whether the thread puts in its places what Read gives.
  bool PutsRead() const {
    if (!rows_.copies) return true;
    return !rows_.reads_again && !Makers({input_}, -1).empty();
  }

  // Of rows side by side, sums of powers, too.
  bool TakesTwoPasses() const {
    return (anchor_.op == OpKind::kSoftmax && !TakesPowersAgain()) ||
           (anchor_.op == OpKind::kLogSumExp &&
            rows_.keeper == RowKeeper::kColumns);
  }

  // How statistics are taken, and what a thread keeps of its elements; the
  // names are those of row_places.cuh.
  void AddKept() {
    Constant(
        fmt::format("static constexpr bool kTwoPasses = {}, "
                    "kKeepsPowers = {},",
                    TakesTwoPasses(), KeepsPowers()));
    Constant(fmt::format("                      kKeepsRead = {};",
                         !rows_.reads_again));
    if (rows_.keeper == RowKeeper::kWarp) return;
    Constant(fmt::format("static constexpr bool kCopied = {}, kPutsRead = {},",
                         rows_.copies, PutsRead()));
    Constant(fmt::format("                      kStreams = {}, kHasTail = {};",
                         rows_.streams, HasTail()));
    Constant(fmt::format("using Kept = {};",
                         rows_.copies ? held_.CopiedTensor().type : "float"));
  }

  // Spec::Statistics, and how the reducer's state becomes one.
  void AddStatistics() {
    Member("struct Statistics {");
    Member(fmt::format("  float {};", fmt::join(fields_, ", ")));
    for (const std::string& name : divisors_) {
      Member(fmt::format("  kiln::Divisor {}_divisor;", name));
    }
    Member("};");
    Member("static __device__ Statistics Finish(const Reducer& state) {");
    std::vector<std::string> results = ReducerResults(anchor_, rows_.length);
    if (HoldsReciprocal()) results.back() = "1.0f / " + results.back();
    for (size_t i = 0; i < results.size(); ++i) {
      Member(fmt::format("  const float {} = {};",
                         ValueAt(anchor_.results[i]).name, results[i]));
    }
    for (const std::string& line : row_.lines()) Member("  " + line);
    std::vector<std::string> members = fields_;
    for (const std::string& name : divisors_) {
      members.push_back(fmt::format("kiln::DivisorOf({})", name));
    }
    Member(fmt::format("  return {{{}}};", fmt::join(members, ", ")));
    Member("}");
  }

  void NameEntry(EntrySpec* entry) {
    if (rows_.keeper == RowKeeper::kWarp) {
      spec_.source_file = "row_warp.cu";
      entry->symbol = "kiln_row_warp";
      entry->function = "kiln::RowWarp";
    } else if (rows_.keeper == RowKeeper::kColumns) {
      spec_.source_file = "column_block.cu";
      entry->symbol = "kiln_column_block";
      entry->function = "kiln::ColumnBlock";
    } else {
      spec_.source_file = "row_block.cu";
      entry->symbol = "kiln_row_block";
      entry->function = "kiln::RowBlock";
    }
  }

  int MinThreads() const {
    return rows_.keeper == RowKeeper::kWarp ? kMinWarpThreads : kMinThreads;
  }

  void AddEntry() {
    EntrySpec entry;
    entry.grid = {static_cast<uint32_t>(rows_.blocks()), 1, 1};
    entry.cluster = {static_cast<uint32_t>(rows_.cluster), 1, 1};
    entry.dynamic_shared_bytes = rows_.dynamic_shared_bytes;
    if (IsTeam()) {
      spec_.source_file = "row_team.cu";
      entry.symbol = "kiln_row_team";
      entry.function = "kiln::RowTeam";
      entry.threads = kTeamThreads + 32 * rows_.finishers;
      entry.cooperative = rows_.resident;
      if (!rows_.resident) {
        for (const uint32_t turn : {kPublishingTurn, kGatheringTurn}) {
          entry.earlier_grids.push_back({entry.grid[0], turn, 1});
        }
      }
      entry.min_blocks = 1;
      tensors_.Add({"records", "unsigned long long", true, *kernel_.partials});
    } else {
      NameEntry(&entry);
      entry.threads = rows_.threads;
      entry.min_blocks = std::max(1, MinThreads() / rows_.threads);
    }
    spec_.entries.push_back(std::move(entry));
  }

  const Schedule& schedule_;
  const Kernel& kernel_;
  const RowGeometry& rows_;
  const Node& anchor_;
  const int input_;
  KernelTensors tensors_;
  ElementCode read_;
  ElementCode row_;  // of what is computed of the statistics alone
  ElementCode element_;
  ElementCode tail_;  // of the outputs of a reduction behind the rows
  const RowHeld held_;
  KernelSpec spec_;
  std::vector<std::string> value_;  // lines of Spec::Value
  std::set<int> of_row_;  // values that are fields of Spec::Statistics
  std::vector<std::string> fields_;    // their names
  std::vector<std::string> divisors_;  // of them, that elements are divided by
};

}  // namespace

KernelSpec MakeRowSpec(const Schedule& schedule, const Kernel& kernel) {
  return RowSpecWriter(schedule, kernel).Run();
}

}  // namespace kiln
