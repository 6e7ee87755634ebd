#include "jit/compile/schedule_memory.h"

#include <algorithm>
#include <optional>

#include "jit/compile/conv_finish.h"
#include "jit/compile/conv_states.h"
#include "jit/compile/conv_suppliers.h"
#include "jit/compile/lay_results.h"
#include "jit/compile/lent_output.h"
#include "jit/compile/split_rows.h"

namespace kiln {
namespace {

// What a team publishes for each row, one word for each member and a sector
// for the total: row_team.cu.
constexpr int64_t kTeamRecordBytes = 8;
constexpr int64_t kTeamTotalBytes = 32;
constexpr int64_t kTeamTagBytes = 8;

constexpr int64_t kCountBytes = 4;  // of conv_finish.cuh

// Whether launches go on from what the one before has left in `partials`.
bool GoesOn(const Kernel& kernel) {
  return (kernel.rows && kernel.rows->keeper == RowKeeper::kTeam) ||
         (kernel.conv && kernel.conv->holds_images());
}

}  // namespace

std::vector<Store> OutputsOf(const Schedule& schedule, int value) {
  std::vector<Store> stores;
  const std::vector<PlanOutput>& outputs = schedule.lowered.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].value.index != value) continue;
    const int slot = schedule.lowered.num_inputs + static_cast<int>(i);
    stores.push_back({value, {slot, 0, outputs[i].dtype}});
  }
  return stores;
}

ScheduleMemory::ScheduleMemory(const Target& target, Schedule* schedule)
    : target_(target), schedule_(*schedule) {}

void ScheduleMemory::AddStores() {
  for (size_t i = 0; i < schedule_.kernels.size(); ++i) {
    AddNeeds(static_cast<int>(i));
    AddStoresOf(static_cast<int>(i));
  }
}

void ScheduleMemory::LayOutWorkspace() {
  std::vector<Lifetime> lifetimes;
  for (const Buffer& buffer : buffers_) lifetimes.push_back(buffer.lifetime);
  const WorkspaceLayout layout = kiln::LayOutWorkspace(lifetimes);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    Fill(buffers_[i], {-1, layout.offsets[i], DataType::kF32});
  }
  schedule_.workspace_bytes = layout.size_bytes;
  for (Kernel& kernel : schedule_.kernels) FindWhatOthersLeave(&kernel);
}

const Node& ScheduleMemory::NodeAt(int index) const {
  return schedule_.lowered.nodes[index];
}

const TensorDesc& ScheduleMemory::DescOf(int value) const {
  return schedule_.lowered.values[value].desc;
}

// What a kernel's blocks leave for each other, and a supplier for others.
void ScheduleMemory::AddNeeds(int index) {
  const Kernel& kernel = schedule_.kernels[index];
  if (kernel.splits()) return AddSplitRows(index);
  if (kernel.conv.has_value()) return AddConvNeeds(index);
  if (kernel.rows.has_value()) return AddRowNeeds(index);
  if (kernel.reduce.has_value()) return AddReduceNeeds(index);
}

// States that blocks leave. And what a team of them exchanges, which lies apart
// from everything else, for the next launch goes on from it.
void ScheduleMemory::AddRowNeeds(int index) {
  Kernel& kernel = schedule_.kernels[index];
  const RowGeometry& rows = *kernel.rows;
  if (rows.splits) {
    kernel.partials = Place{};
    const int64_t bytes =
        rows.rows * rows.cluster * kernel.row_work->pass_state_bytes;
    buffers_.push_back({index, -1, {index, index, bytes}});
  }
  if (rows.keeper != RowKeeper::kTeam) return;
  kernel.partials = Place{};
  const int64_t bytes =
      rows.rows * (rows.team * kTeamRecordBytes + kTeamTotalBytes) +
      rows.blocks() * kTeamTagBytes;
  const int last = static_cast<int>(schedule_.kernels.size()) - 1;
  buffers_.push_back({index, -1, {0, last, bytes}});
}

// States of parts of each output.
void ScheduleMemory::AddReduceNeeds(int index) {
  Kernel& kernel = schedule_.kernels[index];
  if (kernel.reduce->splits == 1) return;
  kernel.partials = Place{};
  const Node& node = NodeAt(kernel.group.anchor);
  const ReduceView view = ViewOf(node, DescOf(ValueOf(node.operands[0])).dims);
  const int64_t states = view.outputs() * kernel.reduce->splits;
  buffers_.push_back(
      {index, -1, {index, index, states * ReducerStateBytes(node)}});
}

// The partial states of a tail that gathers statistics, and what a supplier
// makes.
void ScheduleMemory::AddConvNeeds(int index) {
  const Kernel& kernel = schedule_.kernels[index];
  if (kernel.lays()) return AddLaidLines(index);
  if (kernel.packs()) return AddPackedWeights(index);
  if (kernel.group.tail < 0) return;
  const Node& tail = NodeAt(kernel.group.tail);
  const int64_t channels = ChannelsOfState(tail, kernel.group.domain);
  if (channels == 0) return;
  schedule_.kernels[index].partials = Place{};
  if (kernel.conv->holds_images()) return AddRecords(index, channels);
  const bool merges = MergesWhereUsed(schedule_, kernel, target_);
  const int64_t bytes = BytesOfPartials(schedule_, kernel);
  int last = index;
  if (merges) {
    schedule_.kernels[index].leaves_states = true;
    last = std::max(index, LastUser(tail.results[0]));
  }
  buffers_.push_back({index, -1, {index, last, bytes}});
  if (!kernel.group.finish.empty()) AddProgress(index);
}

// Packed weights of the workspace.
void ScheduleMemory::AddPackedWeights(int index) {
  const Kernel& packer = schedule_.kernels[index];
  if (packer.prepares) return;
  int last = index;
  for (size_t i = index; i < schedule_.kernels.size(); ++i) {
    if (schedule_.kernels[i].group.anchor == packer.group.anchor) {
      last = static_cast<int>(i);
    }
  }
  buffers_.push_back({index, -1, {index, last, packer.conv->packed_bytes()}});
}

// Input that is laid down, for all kernels that read it.
void ScheduleMemory::AddLaidLines(int index) {
  const Kernel& layer = schedule_.kernels[index];
  int last = index;
  for (size_t i = index; i < schedule_.kernels.size(); ++i) {
    const Kernel& kernel = schedule_.kernels[i];
    if (kernel.TakesLaidLines() && LayerOf(schedule_, kernel) == &layer) {
      last = static_cast<int>(i);
    }
  }
  buffers_.push_back(
      {index, -1, {index, last, layer.conv->laid_lines().ReservedBytes()}});
}

// Parts of an operand, for all linear layers that read them.
void ScheduleMemory::AddSplitRows(int index) {
  const Kernel& splitter = schedule_.kernels[index];
  if (splitter.prepares) return;
  int last = index;
  for (size_t i = index; i < schedule_.kernels.size(); ++i) {
    for (const int operand : {0, 1}) {
      if (SplitterOf(schedule_, schedule_.kernels[i], operand) == &splitter) {
        last = static_cast<int>(i);
      }
    }
  }
  const int64_t bytes =
      SplitRowsOf(schedule_, splitter, splitter.operand)->bytes();
  buffers_.push_back({index, -1, {index, last, bytes}});
}

// What blocks that hold images publish, a word for each state and one for
// each block, apart from everything else: the next launch goes on from it.
void ScheduleMemory::AddRecords(int index, int64_t channels) {
  Kernel& kernel = schedule_.kernels[index];
  kernel.leaves_states = true;
  const ConvGeometry& g = *kernel.conv;
  const int64_t states = kernel.group.domain[0] * kernel.group.domain[1] /
                         channels * g.Splits(channels);
  const int last = static_cast<int>(schedule_.kernels.size()) - 1;
  buffers_.push_back(
      {index, -1, {0, last, (states + g.blocks()) * kTeamRecordBytes}});
}

void ScheduleMemory::AddProgress(int index) {
  Kernel& kernel = schedule_.kernels[index];
  kernel.lag = FinishLag(*kernel.conv, target_);
  const int64_t bytes = (1 + kernel.group.domain[0]) * kCountBytes;
  buffers_.push_back({index, -1, {0, index, bytes}, true});
}

// Leaves in memory what later kernels or the caller need, or the kernel
// itself to finish, if no kernel before has.
void ScheduleMemory::AddStoresOf(int index) {
  if (!schedule_.kernels[index].computes()) return;
  const KernelGroup group = schedule_.kernels[index].group;
  const bool keeps_rows = schedule_.kernels[index].rows.has_value();
  for (const int node : group.Nodes()) {
    const bool is_inner =
        !keeps_rows && std::find(group.prologue.begin(), group.prologue.end(),
                                 node) != group.prologue.end();
    const bool is_left =
        schedule_.kernels[index].leaves_states && node == group.tail;
    if (!is_inner && !is_left && stored_.insert(node).second) {
      AddStoresOf(index, NodeAt(node));
    }
  }
}

void ScheduleMemory::AddStoresOf(int index, const Node& node) {
  Kernel& kernel = schedule_.kernels[index];
  for (const int value : node.results) {
    for (const Store& store : OutputsOf(schedule_, value)) {
      kernel.stores.push_back(store);
      if (store.place.dtype == DescOf(value).dtype && !schedule_.homes[value]) {
        schedule_.homes[value] = store.place;
      }
    }
    const bool is_read_again = IsReadAgain(kernel, value);
    const int last_user = std::max(LastUser(value), index);
    if (last_user == index && !is_read_again) continue;
    if (schedule_.homes[value]) continue;
    if (kernel.split_result == value) {
      const int64_t bytes = SplitResultOf(schedule_, kernel)->bytes();
      buffers_.push_back({index, value, {index, last_user, bytes}});
      continue;
    }
    if (schedule_.lowered.values[value].laid) {
      AddLaidResults(index, value, last_user);
      continue;
    }
    if (const auto place = OutputLentTo(schedule_, value, last_user)) {
      schedule_.homes[value] = place;
      kernel.stores.push_back({value, *place});
      continue;
    }
    buffers_.push_back(
        {index, value, {index, last_user, SizeBytes(DescOf(value))}});
  }
}

// The kernel that lays the input down leaves factors and scales.
void ScheduleMemory::AddLaidResults(int index, int value, int last_user) {
  const Kernel& kernel = schedule_.kernels[index];
  const auto layer = std::find_if(
      schedule_.kernels.begin(), schedule_.kernels.end(),
      [&](const Kernel& other) {
        return other.lays() && other.group.anchor == kernel.group.anchor;
      });
  const auto first = static_cast<int>(layer - schedule_.kernels.begin());
  const int64_t bytes = kernel.conv->laid_results().ReservedBytes();
  buffers_.push_back(
      {index, value, {std::min(first, index), last_user, bytes}});
}

// The last kernel that reads a value from memory, or makes it; -1 if none
// does.
int ScheduleMemory::LastUser(int value) const {
  for (int i = static_cast<int>(schedule_.kernels.size()) - 1; i >= 0; --i) {
    if (Reads(schedule_.kernels[i], value)) return i;
  }
  return -1;
}

bool ScheduleMemory::Reads(const Kernel& kernel, int value) const {
  const int producer = schedule_.lowered.values[value].producer;
  const std::vector<int> nodes = kernel.group.Nodes();
  if (std::find(nodes.begin(), nodes.end(), producer) != nodes.end()) {
    return false;
  }
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](int node) { return NodeAt(node).Reads(value); });
}

// Whether `kernel` makes `value` and reads it from memory to finish.
bool ScheduleMemory::IsReadAgain(const Kernel& kernel, int value) const {
  if (kernel.conv && kernel.conv->holds_images()) return false;
  const std::vector<int>& finish = kernel.group.finish;
  const auto has = [&](int node) {
    return std::find(finish.begin(), finish.end(), node) != finish.end();
  };
  return !has(schedule_.lowered.values[value].producer) &&
         std::any_of(finish.begin(), finish.end(),
                     [&](int node) { return NodeAt(node).Reads(value); });
}

// Fills in where a kernel leaves what lies at `place`.
void ScheduleMemory::Fill(const Buffer& buffer, const Place& place) {
  Kernel& kernel = schedule_.kernels[buffer.kernel];
  if (kernel.packs()) {
    kernel.packed = place;
  } else if (kernel.lays()) {
    kernel.laid = place;
  } else if (kernel.splits()) {
    kernel.split[kernel.operand] = place;
  } else if (buffer.counts) {
    kernel.progress = place;
    AddZero(buffer, place, ZeroWhen::kEachLaunch);
  } else if (buffer.value >= 0) {
    FillValue(buffer, place);
  } else {
    kernel.partials = place;
    if (GoesOn(kernel)) AddZero(buffer, place, ZeroWhen::kOnce);
  }
}

void ScheduleMemory::FillValue(const Buffer& buffer, Place place) {
  place.dtype = schedule_.lowered.values[buffer.value].laid
                    ? DataType::kF16
                    : DescOf(buffer.value).dtype;
  schedule_.homes[buffer.value] = place;
  schedule_.kernels[buffer.kernel].stores.push_back({buffer.value, place});
}

void ScheduleMemory::FindWhatOthersLeave(Kernel* kernel) const {
  if (kernel->ReadsPacked()) {
    kernel->packed = PackerOf(schedule_, *kernel)->packed;
  }
  if (kernel->TakesLaidLines()) {
    kernel->laid = kernel->conv->problem.input_is_laid
                       ? schedule_.homes[InputOf(schedule_, *kernel)]
                       : LayerOf(schedule_, *kernel)->laid;
  }
  for (const int operand : {0, 1}) {
    const Kernel* const splitter =
        kernel->computes() ? SplitterOf(schedule_, *kernel, operand) : nullptr;
    if (splitter == nullptr) continue;
    kernel->split[operand] = splitter->splits()
                                 ? splitter->split[splitter->operand]
                                 : schedule_.homes[*splitter->split_result];
  }
  const Kernel* const bounder = BounderOf(schedule_, *kernel);
  if (bounder == nullptr) return;
  const KernelGroup& group = bounder->group;
  const int last =
      group.epilogue.empty() ? group.anchor : group.epilogue.back();
  kernel->laid_results = schedule_.homes[NodeAt(last).results[0]];
  kernel->bounds = bounder->bounds;
}

void ScheduleMemory::AddZero(const Buffer& buffer, const Place& place,
                             ZeroWhen when) {
  schedule_.zero.push_back(
      {Area::kWorkspace, place.offset_bytes, buffer.lifetime.size_bytes, when});
}

}  // namespace kiln
