#include "jit/compile/compile_plan.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jit/compile/compile_units.h"
#include "jit/compile/eager_plan.h"
#include "jit/compile/errors.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/launch_steps.h"
#include "jit/compile/new_artifact.h"
#include "jit/compile/schedule.h"
#include "jit/compile/specialize.h"

namespace kiln {
namespace {

int64_t MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now() - start)
      .count();
}

// Whether nothing relies on how many blocks an entry has on a multiprocessor.
bool MayHaveFewer(const EntrySpec& entry) {
  return entry.min_blocks == 0 || entry.may_have_fewer;
}

// The unit with launch bounds that leave a third more registers than an entry
// had: 42 where it had 32, and 85 where it had 64.
std::string WriteWithMore(const std::vector<int>& registers, KernelSpec spec) {
  constexpr int kRegistersOfMultiprocessor = 65536;
  for (size_t i = 0; i < spec.entries.size(); ++i) {
    if (registers[i] == 0) continue;
    EntrySpec& entry = spec.entries[i];
    entry.min_blocks =
        kRegistersOfMultiprocessor / 4 * 3 / registers[i] / entry.threads;
    if (entry.min_blocks == 0) return "";
  }
  return WriteUnit(spec);
}

Unit UnitWith(const KernelSpec& spec, std::string source) {
  Unit unit = {spec.entries, std::move(source)};
  if (std::all_of(spec.entries.begin(), spec.entries.end(), MayHaveFewer)) {
    unit.write_with_more = [spec](const std::vector<int>& registers) {
      return WriteWithMore(registers, spec);
    };
  }
  return unit;
}

// By identity. Attempts to compile a plan have units in common.
using KnownUnits = std::map<std::string, CompiledUnit>;

// Compiles the kernels of schedules into one artifact, but for units that are
// known.
class Compilation {
 public:
  // `spills_are_right`: kernels may put words aside, if they must.
  Compilation(const CompileRequest& request, bool spills_are_right,
              NvrtcCompiler* nvrtc, KnownUnits* known, Artifact* artifact)
      : arch_(request.target.arch),
        spills_are_right_(spills_are_right),
        nvrtc_(nvrtc),
        known_(*known),
        artifact_(artifact) {}

  void AddVariant(const Schedule& schedule) {
    Variant variant;
    variant.requires_ = schedule.requires_;
    variant.workspace_bytes = schedule.workspace_bytes;
    variant.prepared_bytes = schedule.prepared_bytes;
    variant.zero = schedule.zero;
    for (const Kernel& kernel : schedule.kernels) {
      const KernelSpec spec = MakeKernelSpec(schedule, kernel);
      if (kernel.prepares) AddPreparedFrom(spec, &variant);
      const int unit = UnitOf(spec);
      if (kernel.conv && kernel.computes()) tiles_[unit] = *kernel.conv;
      AddLaunchSteps(spec, unit,
                     kernel.prepares ? &variant.prepare : &variant.launch);
    }
    artifact_->variants.push_back(std::move(variant));
  }

  absl::Status Finish() {
    absl::Status status = CheckKnown();  // by earlier attempts
    if (status.ok()) status = CompileUnknown();
    if (status.ok()) status = CheckKnown();
    if (!status.ok()) return status;
    for (const std::string& identity : identities_) {
      artifact_->modules.push_back(known_.at(identity).module);
    }
    return absl::OkStatus();
  }

  // Whether Finish failed because a kernel does not fit in registers.
  bool spills() const { return spills_; }

  // Adds the tiles of such kernels.
  void AddRefused(RefusedTiles* refused) const {
    for (const auto& [unit, tile] : tiles_) {
      const auto known = known_.find(identities_[unit]);
      if (known == known_.end() || known->second.refused.empty()) continue;
      refused->push_back(tile);
    }
  }

 private:
  static void AddPreparedFrom(const KernelSpec& spec, Variant* variant) {
    for (const KernelTensor& tensor : spec.tensors) {
      if (tensor.place.slot < 0) continue;
      variant->prepared_from.push_back(tensor.place.slot);
    }
  }

  // The number of the unit, and module, with this kernel. Equal kernels share
  // one.
  int UnitOf(const KernelSpec& spec) {
    std::string source = WriteUnit(spec);
    const auto [place, is_new] =
        numbers_.emplace(UnitIdentity(source), static_cast<int>(units_.size()));
    if (is_new) {
      identities_.push_back(place->first);
      units_.push_back(UnitWith(spec, std::move(source)));
    }
    return place->second;
  }

  // An error if a unit that has been compiled does not fit in registers.
  absl::Status CheckKnown() {
    for (const std::string& identity : identities_) {
      const auto found = known_.find(identity);
      if (found == known_.end() || found->second.refused.empty()) continue;
      const CompiledUnit& unit = found->second;
      if (spills_are_right_ && !unit.module.cubin.empty()) continue;
      spills_ = true;
      return Spills(unit.refused, unit.module.source, unit.log);
    }
    return absl::OkStatus();
  }

  absl::Status CompileUnknown() {
    std::vector<Unit> unknown;
    std::vector<std::string> identities;
    for (size_t i = 0; i < units_.size(); ++i) {
      if (known_.count(identities_[i]) > 0) continue;
      unknown.push_back(units_[i]);
      identities.push_back(identities_[i]);
    }
    absl::StatusOr<std::vector<CompiledUnit>> compiled =
        CompileUnits(unknown, arch_, nvrtc_);
    if (!compiled.ok()) return compiled.status();
    for (size_t i = 0; i < identities.size(); ++i) {
      known_.emplace(identities[i], std::move((*compiled)[i]));
    }
    return absl::OkStatus();
  }

  const std::string arch_;
  const bool spills_are_right_;
  NvrtcCompiler* const nvrtc_;
  KnownUnits& known_;
  Artifact* const artifact_;
  std::vector<Unit> units_;
  std::vector<std::string> identities_;  // of units
  std::map<std::string, int> numbers_;   // of units, by their identity
  std::map<int, ConvGeometry> tiles_;    // of units, by their number
  bool spills_ = false;
};

// Compiles the fastest schedules whose kernels fit in registers. The plain one
// is taken in any case, the others are attempts. The first is made again while
// tiles are refused, up to twice, for another tile is mostly better than what
// leaves more free: f16 [32,12,13,13] to 960 channels, two norms, took 132 us
// without images that are held, and takes 54.
absl::Status AddVariants(const CompileRequest& request, const Tuning& tuning,
                         NvrtcCompiler* nvrtc, CompilePlanTiming* spent,
                         Artifact* artifact) {
  absl::Status status;
  KnownUnits known;
  RefusedTiles refused;
  size_t known_tiles = 0;  // refused before the last attempt
  constexpr Room kAttempts[] = {Room::kTight, Room::kTight, Room::kTight,
                                Room::kAmple, Room::kVast,  Room::kWarps,
                                Room::kPlain};
  for (size_t i = 0; i < std::size(kAttempts); ++i) {
    const Room room = kAttempts[i];
    const bool is_again = i > 0 && room == Room::kTight;
    if (is_again && refused.size() == known_tiles) continue;
    known_tiles = refused.size();
    artifact->modules.clear();
    artifact->variants.clear();
    Compilation compilation(request, room == Room::kPlain, nvrtc, &known,
                            artifact);
    for (const Schedule& schedule :
         MakeSchedules(request.plan, request.target, room, tuning, refused)) {
      compilation.AddVariant(schedule);
    }
    const auto start = std::chrono::steady_clock::now();
    status = compilation.Finish();
    spent->nvrtc_us += MicrosecondsSince(start);
    if (!compilation.spills()) return status;
    compilation.AddRefused(&refused);
  }
  return status;
}

absl::Status AddEager(const CompileRequest& request, NvrtcCompiler* nvrtc,
                      CompilePlanTiming* spent, Artifact* artifact) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<Module> module =
      CompileEagerModule(request.target.arch, nvrtc);
  spent->nvrtc_us = MicrosecondsSince(start);
  if (!module.ok()) return module.status();
  *artifact = MakeEagerArtifact(request, *std::move(module));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Artifact> CompilePlan(const CompileRequest& request,
                                     NvrtcCompiler* nvrtc,
                                     CompilePlanTiming* timing) {
  const absl::StatusOr<Tuning> tuning = ParseTuning(request.variant);
  if (!tuning.ok()) return tuning.status();
  if (!request.target.is_cpu() && nvrtc == nullptr) {
    return NoNvrtc(request.target.arch);
  }
  const auto start = std::chrono::steady_clock::now();
  CompilePlanTiming spent;
  Artifact artifact = NewArtifact(request);
  if (!request.target.is_cpu()) {
    const absl::Status status =
        tuning->eager ? AddEager(request, nvrtc, &spent, &artifact)
                      : AddVariants(request, *tuning, nvrtc, &spent, &artifact);
    if (!status.ok()) return status;
  }
  spent.generate_us = MicrosecondsSince(start) - spent.nvrtc_us;
  if (timing != nullptr) *timing = spent;
  return artifact;
}

}  // namespace kiln
