#include "jit/compile/row_spec.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

// The largest position that fits in an int with a block's stride behind it.
constexpr int64_t kMaxNarrow = (int64_t{1} << 31) - (int64_t{1} << 24);
constexpr int kTeamWarps = 15;  // of row_team.cu, without its finishers
// On a multiprocessor, for which registers must suffice: 64 for each.
constexpr int kMinThreads = 1024;

class RowSpecWriter {
 public:
  RowSpecWriter(const Schedule& schedule, const Kernel& kernel)
      : schedule_(schedule),
        kernel_(kernel),
        rows_(*kernel.rows),
        anchor_(schedule.lowered.nodes[kernel.group.anchor]),
        input_(ValueOf(anchor_.operands[0])),
        tensors_(schedule),
        read_(schedule, kernel.group.domain, &tensors_),
        element_(schedule, kernel.group.domain, &tensors_),
        tail_(schedule, TailDomain(), &tensors_) {}

  KernelSpec Run() && {
    FillRead();
    FillElement();
    AddConstants();
    AddStatistics();
    AddHeld();
    if (!IsTeam()) AddKept();
    if (HasTail()) AddTail();
    AddFetch("FetchForRead", read_);
    AddFetch("FetchForElement", element_);
    AddPut();
    AddIsAligned();
    if (IsTeam()) AddStaging();
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
    for (const int result : anchor_.results) {
      element_.DefineAs(result, "row." + ValueAt(result).name);
    }
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
      if (KeepsPowers() && IsSoftmax(NodeAt(node))) {
        AddShare(NodeAt(node).results[0]);
      } else {
        element_.Compute(NodeAt(node));
      }
    }
    const std::string argument =
        fmt::format("float {}, const Statistics& row",
                    KeepsPowers() ? "power" : ValueAt(input_).name);
    if (HasTail()) {
      value_argument_ = argument;
      FillTail();
      return;
    }
    for (const Store& store : kernel_.stores) element_.StoreTo(store);
    spec_.element_body = element_.lines();
    spec_.element_argument = argument;
  }

  bool HasTail() const { return kernel_.group.tail >= 0; }
  const Node& Tail() const { return NodeAt(kernel_.group.tail); }
  int TailInput() const { return ValueOf(Tail().operands[0]); }
  Dims TailDomain() const {
    return HasTail() ? ValueAt(Tail().results[0]).desc.dims : Dims{};
  }

  // Spec::Value: the element of which the tail is taken.
  void AddValue() {
    const std::string value = element_.Local(TailInput());
    Member("template <typename Fields, typename At>");
    Member("static __device__ float Value(Fields& t, const At& at,");
    Member(fmt::format("                              {}) {{", value_argument_));
    for (const std::string& line : element_.lines()) Member("  " + line);
    Member(fmt::format("  return {};", value));
    Member("}");
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
    Constant(fmt::format("static constexpr int kSegment = {}, "
                         "kSegmentLanes = {};",
                         rows_.segment, rows_.segment_lanes));
    Constant(fmt::format("static constexpr int kSegmentVector = {};",
                         rows_.segment_vector));
    Constant(
        fmt::format("using SegmentReducer = kiln::{};", ReducerName(Tail().op)));
    AddValue();
  }

  // The node that uses the anchor's statistics, and not another softmax.
  bool IsSoftmax(const Node& node) const {
    return node.op == OpKind::kSoftmax &&
           ValueOf(node.operands[1]) == anchor_.results[0];
  }

  // Softmax of the power that is kept in the element's stead.
  void AddShare(int result) {
    element_.Assign(ValueAt(result).name,
                    fmt::format("kiln::Quotient(power, row.{})",
                                ValueAt(anchor_.results[1]).name));
    element_.Define(result);
  }

  // Whether e^(x - largest) may take the place of x: nothing but the softmax
  // itself uses x.
  bool KeepsPowers() const {
    if (IsTeam() || anchor_.op != OpKind::kSoftmax) return false;
    for (const Store& store : kernel_.stores) {
      if (store.value == input_) return false;
    }
    if (HasTail() && TailInput() == input_) return false;
    std::vector<int> nodes = kernel_.group.epilogue;
    nodes.insert(nodes.end(), kernel_.group.prologue.begin(),
                 kernel_.group.prologue.end());
    return std::none_of(nodes.begin(), nodes.end(), [&](int index) {
      const Node& node = NodeAt(index);
      return !IsSoftmax(node) &&
             std::any_of(node.operands.begin(), node.operands.end(),
                         [&](const Operand& operand) {
                           return ValueOf(operand) == input_;
                         });
    });
  }

  void AddConstants() {
    const int64_t count = rows_.rows * rows_.length;
    spec_.index = count > kMaxNarrow ? "long long" : "int";
    for (const std::string& line : ShapeText("Domain", kernel_.group.domain)) {
      Constant(line);
    }
    Constant(fmt::format("static constexpr Index kRows = {}, kRowLength = {};",
                         rows_.rows, rows_.length));
    Constant(fmt::format("static constexpr int kVector = {}, kAtOnce = {};",
                         rows_.vector, rows_.at_once));
    if (IsTeam()) {
      Constant(
          fmt::format("static constexpr int kTeam = {}, kChunks = {}, "
                      "kChunk = {};",
                      rows_.team, rows_.chunks, rows_.chunk));
      Constant(fmt::format("static constexpr int kSlots = {}, kSlotBytes = {};",
                           rows_.slots, rows_.slot_bytes));
      Constant(fmt::format("static constexpr int kFinisherWarps = {};",
                           rows_.finishers));
    } else {
      Constant(
          fmt::format("static constexpr int kThreads = {}, kLanes = {}, "
                      "kCluster = {};",
                      rows_.threads, rows_.lanes, rows_.cluster));
      if (rows_.keeper != RowKeeper::kWarp) {
        Constant(fmt::format("static constexpr bool kDynamicShared = {};",
                             rows_.dynamic_shared_bytes > 0));
      }
    }
    if (rows_.pitch > 1) {
      Constant(fmt::format("static constexpr Index kPitch = {};", rows_.pitch));
    }
    Constant(fmt::format("using Reducer = kiln::{};", ReducerName(anchor_.op)));
  }

  // Whether the thread puts in its places what Read gives.
  bool PutsRead() const {
    if (!rows_.copies) return true;
    return rows_.kept_bytes == sizeof(float) && !Makers({input_}, -1).empty();
  }

  // How statistics are taken, and what a thread keeps of its elements; the
  // names are those of row_places.cuh.
  void AddKept() {
    Constant(
        fmt::format("static constexpr bool kTwoPasses = {}, "
                    "kKeepsPowers = {};",
                    anchor_.op == OpKind::kSoftmax, KeepsPowers()));
    if (rows_.keeper == RowKeeper::kWarp) return;
    const bool keeps_read = rows_.kept_bytes == sizeof(float);
    Constant(fmt::format("static constexpr bool kCopied = {}, kKeepsRead = {},",
                         rows_.copies, keeps_read));
    Constant(
        fmt::format("                      kPutsRead = {}, kHasTail = {};",
                    PutsRead(), HasTail()));
    Constant(fmt::format("using Kept = {};",
                         rows_.copies ? CopiedTensor().type : "float"));
    if (!rows_.copies) return;
    const std::string& name = CopiedTensor().name;
    Member("static __device__ const Kept* Source(const Tensors& t) {");
    Member(fmt::format("  return t.{};", name));
    Member("}");
    Member("template <int kCount>");
    Member("static __device__ kiln::Vector<Kept, kCount>* CopiedIn(");
    Member("    Held<kCount>* held) {");
    Member(fmt::format("  return &held->{};", name));
    Member("}");
  }

  // The only whole tensor that Spec::Read reads.
  const KernelTensor& CopiedTensor() const {
    return *std::find_if(tensors_.list().begin(), tensors_.list().end(),
                         [&](const KernelTensor& tensor) {
                           const auto access =
                               read_.accesses().find(tensor.name);
                           return access != read_.accesses().end() &&
                                  access->second == "at.i";
                         });
  }

  // Whether the vector of `tensor` is there when a vector is read, or, of those
  // read, when results are computed.
  bool IsHeldAlready(const KernelTensor& tensor, const std::string& fetch) const {
    if (IsTeam() || !rows_.copies || &tensor != &CopiedTensor()) return false;
    return fetch == "FetchForRead" || rows_.kept_bytes != sizeof(float);
  }

  // Spec::Statistics, and how the reducer's state becomes one.
  void AddStatistics() {
    std::vector<std::string> names;
    for (const int result : anchor_.results) {
      names.push_back(ValueAt(result).name);
    }
    Member("struct Statistics {");
    Member(fmt::format("  float {};", fmt::join(names, ", ")));
    Member("};");
    Member("static __device__ Statistics Finish(const Reducer& state) {");
    Member("  Statistics row;");
    const std::vector<std::string> results =
        ReducerResults(anchor_, rows_.length);
    for (size_t i = 0; i < names.size(); ++i) {
      Member(fmt::format("  row.{} = {};", names[i], results[i]));
    }
    Member("  return row;");
    Member("}");
  }

  // Whether the code of elements touches it, and not only that of a tail.
  bool IsOfElements(const KernelTensor& tensor) const {
    return read_.accesses().count(tensor.name) +
               element_.accesses().count(tensor.name) >
           0;
  }

  // How element code sees a tensor: a vector of the elements at hand, also
  // along w where that is what runs; else the tensor itself.
  enum class View { kWhole, kAlongW, kTensor };

  View ViewOfTensor(const KernelTensor& tensor) const {
    if (tensor.is_output) return View::kWhole;
    std::set<std::string> indices;
    for (const ElementCode* code : {&read_, &element_}) {
      const auto access = code->accesses().find(tensor.name);
      if (access != code->accesses().end()) indices.insert(access->second);
    }
    if (indices == std::set<std::string>{"at.i"}) return View::kWhole;
    const bool in_vectors =
        AlignDims(kernel_.group.domain)[3] % rows_.vector == 0;
    const bool along_w = indices == std::set<std::string>{"at.w"};
    return along_w && in_vectors && !IsTeam() ? View::kAlongW : View::kTensor;
  }

  void AddHeld() {
    Member("template <int kCount>");
    Member("struct Held {");
    for (const KernelTensor& tensor : tensors_.list()) {
      if (!IsOfElements(tensor)) continue;
      if (ViewOfTensor(tensor) == View::kTensor) {
        Member(fmt::format("  const {}* {};", tensor.type, tensor.name));
      } else {
        Member(fmt::format("  kiln::Vector<{}, kCount> {};", tensor.type,
                           tensor.name));
      }
    }
    Member("};");
  }

  // What `code` reads, of the vector that begins at `first`.
  void AddFetch(const std::string& name, const ElementCode& code) {
    Member("template <int kCount>");
    Member(fmt::format("static __device__ void {}(const Tensors& t,", name));
    Member(fmt::format("{}const kiln::Point<Index>& first,",
                       std::string(name.size() + 24, ' ')));
    Member(fmt::format("{}bool is_aligned, Held<kCount>* held) {{",
                       std::string(name.size() + 24, ' ')));
    for (const KernelTensor& tensor : tensors_.list()) {
      if (tensor.is_output || code.accesses().count(tensor.name) == 0 ||
          IsHeldAlready(tensor, name)) {
        continue;
      }
      const View view = ViewOfTensor(tensor);
      Member(view == View::kTensor
                 ? fmt::format("  held->{0} = t.{0};", tensor.name)
                 : fmt::format("  kiln::Fetch(t.{0}, first.{1}, is_aligned, "
                               "&held->{0});",
                               tensor.name, view == View::kWhole ? "i" : "w"));
    }
    Member("}");
  }

  void AddPut() {
    Member("template <int kCount>");
    Member("static __device__ void PutResults(const Tensors& t, Index i,");
    Member("                                  bool is_aligned,");
    Member("                                  const Held<kCount>& held) {");
    for (const KernelTensor& tensor : tensors_.list()) {
      if (!tensor.is_output || !IsOfElements(tensor)) continue;
      Member(fmt::format("  kiln::Put(held.{0}, is_aligned, t.{0}, i);",
                         tensor.name));
    }
    Member("}");
  }

  void AddIsAligned() {
    std::vector<std::string> names;
    for (const KernelTensor& tensor : tensors_.list()) {
      if (!IsOfElements(tensor)) continue;
      if (ViewOfTensor(tensor) == View::kTensor) continue;
      names.push_back("t." + tensor.name);
    }
    Member("static __device__ bool IsAligned(const Tensors& t) {");
    Member(
        fmt::format("  return kiln::AreAligned({});", fmt::join(names, ", ")));
    Member("}");
  }

  // A tensor of which chunks lie in the ring, and where in a slot.
  struct Staged {
    KernelTensor tensor;
    int64_t offset = 0;
  };

  std::vector<Staged> StagedInputs() const {
    std::vector<Staged> staged;
    int64_t offset = 0;
    for (const KernelTensor& tensor : tensors_.list()) {
      if (tensor.is_output || ViewOfTensor(tensor) != View::kWhole) continue;
      staged.push_back({tensor, offset});
      offset += rows_.chunk * ElementSize(tensor.place.dtype);
    }
    return staged;
  }

  void AddStaging() {
    const std::vector<Staged> inputs = StagedInputs();
    int64_t bytes = 0;
    for (const Staged& input : inputs) {
      bytes += ElementSize(input.tensor.place.dtype);
    }
    Constant(fmt::format("static constexpr int kLoadedBytes = {};", bytes));
    AddForEach("ForEachInput", inputs);
    Member("static __device__ Tensors Staged(Tensors t, unsigned char* slot,");
    Member("                                 Index begin) {");
    for (const Staged& staged : inputs) {
      Member(
          fmt::format("  t.{0} = reinterpret_cast<{1}*>(slot + {2}) - begin;",
                      staged.tensor.name, staged.tensor.type, staged.offset));
    }
    Member("  return t;");
    Member("}");
  }

  void AddForEach(const std::string& name, const std::vector<Staged>& list) {
    Member("template <typename Function>");
    Member(fmt::format("static __device__ void {}(const Tensors& t,", name));
    Member(fmt::format("{}const Function& function) {{",
                       std::string(name.size() + 24, ' ')));
    for (const Staged& staged : list) {
      Member(fmt::format("  function(t.{}, {});", staged.tensor.name,
                         staged.offset));
    }
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

  void AddEntry() {
    EntrySpec entry;
    entry.grid = {static_cast<uint32_t>(rows_.blocks()), 1, 1};
    entry.cluster = {static_cast<uint32_t>(rows_.cluster), 1, 1};
    entry.dynamic_shared_bytes = rows_.dynamic_shared_bytes;
    if (IsTeam()) {
      spec_.source_file = "row_team.cu";
      entry.symbol = "kiln_row_team";
      entry.function = "kiln::RowTeam";
      entry.threads = 32 * (kTeamWarps + rows_.finishers);
      entry.cooperative = true;
      entry.min_blocks = 1;
      tensors_.Add({"records", "unsigned long long", true, *kernel_.partials});
    } else {
      NameEntry(&entry);
      entry.threads = rows_.threads;
      entry.min_blocks = std::max(1, kMinThreads / rows_.threads);
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
  ElementCode element_;
  ElementCode tail_;  // of the outputs of a reduction behind the rows
  KernelSpec spec_;
  std::string value_argument_;  // of Spec::Value
};

}  // namespace

KernelSpec MakeRowSpec(const Schedule& schedule, const Kernel& kernel) {
  return RowSpecWriter(schedule, kernel).Run();
}

}  // namespace kiln
