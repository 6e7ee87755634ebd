#include "tests/ptx/plan_run.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/launch_steps.h"
#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"
#include "tests/ptx/nvrtc_ptx.h"

namespace kiln::ptx {
namespace {

absl::Status AddKernel(const KernelSpec& spec, bool prepares,
                       const std::string& arch, const Toolchain& toolchain,
                       PlanKernels* kernels) {
  const absl::StatusOr<std::string> text =
      PtxOf(WriteUnit(spec), arch, toolchain);
  if (!text.ok()) return text.status();
  absl::StatusOr<Program> program = Program::Load(*text);
  if (!program.ok()) return program.status();
  const int module = static_cast<int>(kernels->programs.size());
  kernels->programs.push_back(*std::move(program));
  kernels->files.push_back(spec.source_file);
  std::vector<std::string> symbols;
  for (const EntrySpec& entry : spec.entries) symbols.push_back(entry.symbol);
  AddLaunchSteps(spec, module, prepares ? &kernels->prepare : &kernels->launch);
  kernels->symbols.push_back(std::move(symbols));
  return absl::OkStatus();
}

// Memory that a step sees.
struct Memory {
  std::vector<std::vector<char>>* slots = nullptr;
  std::vector<size_t> begins;  // of tensors in slots
  std::vector<uint64_t> workspace;
  std::vector<uint64_t> prepared;
};

std::vector<uint64_t> Poisoned(int64_t size_bytes) {
  return std::vector<uint64_t>((size_bytes + 7) / 8, ~uint64_t{0});
}

char* AreaOf(Area area, Memory* memory) {
  return reinterpret_cast<char*>(area == Area::kWorkspace
                                     ? memory->workspace.data()
                                     : memory->prepared.data());
}

uint64_t AddressOf(const Arg& arg, Memory* memory) {
  const char* begin =
      arg.kind == ArgKind::kSlot
          ? (*memory->slots)[arg.slot].data() + memory->begins[arg.slot]
          : AreaOf(arg.kind == ArgKind::kWorkspace ? Area::kWorkspace
                                                   : Area::kPrepared,
                   memory);
  return reinterpret_cast<uint64_t>(begin + arg.offset_bytes);
}

absl::Status RunStep(const PlanKernels& kernels, const Step& step,
                     const PlanRunOptions& options, const GlobalMemory& global,
                     Memory* memory) {
  std::vector<uint64_t> args;
  for (const Arg& arg : step.args) args.push_back(AddressOf(arg, memory));
  Launch launch;
  launch.entry = kernels.symbols[step.module][step.entry];
  launch.grid = step.grid;
  launch.block = step.block;
  launch.cluster = step.cluster;
  launch.dynamic_shared_bytes = step.dynamic_shared_bytes;
  launch.args = args;
  launch.resident_blocks = options.resident_blocks;
  launch.overlaps = step.programmatic_stream_serialization;
  launch.schedule_seed = options.schedule_seed;
  launch.rounds_sums = options.rounds_sums;
  if (step.cooperative) {
    launch.resident_blocks =
        int64_t{step.grid[0]} * step.grid[1] * step.grid[2];
  }
  return kernels.programs[step.module].Run(launch, global);
}

// Of slots: so many elements behind where they are allocated.
std::vector<size_t> TensorBegins(const Plan& plan, int off_grid) {
  std::vector<size_t> begins;
  const auto add = [&](DataType type) {
    begins.push_back(static_cast<size_t>(off_grid * ElementSize(type)));
  };
  for (const auto& input : plan.inputs) add(input.desc.dtype);
  for (const auto& output : plan.outputs) add(output.dtype);
  return begins;
}

void MoveBehind(const std::vector<size_t>& begins,
                std::vector<std::vector<char>>* slots) {
  for (size_t i = 0; i < begins.size(); ++i) {
    (*slots)[i].insert((*slots)[i].begin(), begins[i], '\0');
  }
}

void MoveBack(const std::vector<size_t>& begins,
              std::vector<std::vector<char>>* slots) {
  for (size_t i = 0; i < begins.size(); ++i) {
    const auto begin = (*slots)[i].begin();
    (*slots)[i].erase(begin, begin + static_cast<int64_t>(begins[i]));
  }
}

void Zero(const Schedule& schedule, ZeroWhen when, Memory* memory) {
  for (const ZeroRange& zero : schedule.zero) {
    if (zero.when != when) continue;
    std::fill_n(AreaOf(zero.area, memory) + zero.offset_bytes, zero.size_bytes,
                '\0');
  }
}

bool KeepsWorkspace(const Schedule& schedule) {
  return std::any_of(
      schedule.zero.begin(), schedule.zero.end(),
      [](const ZeroRange& zero) { return zero.when == ZeroWhen::kOnce; });
}

absl::Status RunSteps(const PlanKernels& kernels,
                      const std::vector<Step>& steps,
                      const PlanRunOptions& options, GlobalMemory* global,
                      Memory* memory) {
  for (const Step& step : steps) {
    global->BeginLaunch();
    const absl::Status status =
        RunStep(kernels, step, options, *global, memory);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanKernels> CompileToPtx(std::string_view plan_text,
                                         std::string_view target,
                                         const Toolchain& toolchain,
                                         const PlanRunOptions& options) {
  const absl::StatusOr<Plan> plan = ParsePlanText(plan_text);
  if (!plan.ok()) return plan.status();
  absl::StatusOr<CanonicalPlan> canonical = Canonicalize(*plan);
  if (!canonical.ok()) return canonical.status();
  const absl::StatusOr<Target> parsed = ParseTarget(target);
  if (!parsed.ok()) return parsed.status();
  std::vector<Schedule> schedules =
      MakeSchedules(*canonical, *parsed, options.room, options.tuning);
  if (options.variant >= schedules.size()) {
    return absl::OutOfRangeError(
        fmt::format("The plan has {} variants.", schedules.size()));
  }
  PlanKernels kernels;
  kernels.canonical = *std::move(canonical);
  kernels.schedule = std::move(schedules[options.variant]);
  for (const Kernel& kernel : kernels.schedule.kernels) {
    const absl::Status status =
        AddKernel(MakeKernelSpec(kernels.schedule, kernel), kernel.prepares,
                  parsed->arch, toolchain, &kernels);
    if (!status.ok()) return status;
  }
  return kernels;
}

absl::Status RunOnProcessor(const PlanKernels& kernels,
                            std::vector<std::vector<char>>* slots,
                            const PlanRunOptions& options) {
  const Schedule& schedule = kernels.schedule;
  const std::vector<size_t> begins =
      TensorBegins(kernels.canonical.plan, options.off_grid);
  Memory memory{slots, begins, Poisoned(schedule.workspace_bytes),
                Poisoned(schedule.prepared_bytes)};
  MoveBehind(begins, slots);
  Zero(schedule, ZeroWhen::kOnce, &memory);
  GlobalMemory global;
  for (size_t i = 0; i < slots->size(); ++i) {
    const std::vector<char>& slot = (*slots)[i];
    global.Allow(slot.data() + begins[i],
                 static_cast<int64_t>(slot.size() - begins[i]),
                 i >= kernels.canonical.plan.inputs.size());
  }
  global.Allow(memory.workspace.data(), schedule.workspace_bytes, true);
  global.Allow(memory.prepared.data(), schedule.prepared_bytes, true);
  absl::Status status =
      RunSteps(kernels, kernels.prepare, options, &global, &memory);
  const auto launch = [&] {
    if (!status.ok()) return;
    Zero(schedule, ZeroWhen::kEachLaunch, &memory);
    status = RunSteps(kernels, kernels.launch, options, &global, &memory);
  };
  if (KeepsWorkspace(schedule)) {
    // What a launch on other values leaves must not be taken for its own.
    const std::vector<std::vector<char>> given = *slots;
    for (std::vector<char>& slot : *slots) std::ranges::fill(slot, '\0');
    launch();
    for (size_t i = 0; i < given.size(); ++i) {
      std::ranges::copy(given[i], (*slots)[i].begin());
    }
  }
  launch();
  MoveBack(begins, slots);
  return status;
}

}  // namespace kiln::ptx
