#include "tests/jit/compile/compile_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "jit/compile/compile_plan.h"
#include "jit/plan/errors.h"
#include "jit/plan/plan_text.h"

namespace kiln {
namespace {

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

// One pointer parameter of an entry, as the unit declares it.
struct Parameter {
  bool is_const = false;
  bool is_loaded = false;  // element by element
};

// The parameters of `symbol` in a generated unit.
std::vector<Parameter> ParametersOf(const std::string& source,
                                    const std::string& symbol) {
  size_t begin = source.find(symbol + "(");
  while (begin > 0 && std::isspace(source[begin - 1]) == 0) {
    begin = source.find(symbol + "(", begin + 1);
  }
  begin += symbol.size() + 1;
  std::string list = source.substr(begin, source.find(") {", begin) - begin);
  std::vector<Parameter> parameters;
  for (size_t comma = 0; comma != std::string::npos;) {
    comma = list.find(',');
    const std::string parameter = list.substr(0, comma);
    const std::string name = parameter.substr(parameter.rfind(' ') + 1);
    parameters.push_back({parameter.find("const ") != std::string::npos,
                          source.find(fmt::format("kiln::Load(t.{}, at.i)",
                                                  name)) != std::string::npos});
    if (comma != std::string::npos) list = list.substr(comma + 1);
  }
  return parameters;
}

// Follows what lies in the outputs and in the workspace from step to step.
class LaunchRecordChecker {
 public:
  LaunchRecordChecker(const Artifact& artifact, const Variant& variant)
      : artifact_(artifact), variant_(variant) {
    for (const ZeroRange& zero : variant.zero) {
      if (zero.area == Area::kWorkspace) {
        written_.insert({ArgKind::kWorkspace, zero.offset_bytes});
      }
    }
  }

  void Run() {
    for (const Step& step : variant_.prepare) CheckStep(step);
    EXPECT_TRUE(written_slots_.empty()) << "a prepare step writes an output";
    for (const Step& step : variant_.launch) CheckStep(step);
    for (size_t i = 0; i < artifact_.slots.size(); ++i) {
      if (artifact_.slots[i].role != SlotRole::kOutput) continue;
      EXPECT_EQ(written_slots_.count(static_cast<int>(i)), 1u)
          << "output slot " << i << " is never written";
    }
  }

 private:
  void CheckStep(const Step& step) {
    const Module& module = artifact_.modules.at(step.module);
    const KernelEntry& entry = module.entries.at(step.entry);
    EXPECT_EQ(entry.local_bytes, 0) << entry.symbol;
    EXPECT_GT(entry.registers, 0) << entry.symbol;
    CheckGrid(step);
    const auto parameters = ParametersOf(module.source, entry.symbol);
    ASSERT_EQ(step.args.size(), parameters.size()) << module.source;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (step.args[i].kind == ArgKind::kConstant) continue;
      if (parameters[i].is_const) CheckRead(step.args[i]);
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].is_const) {
        CheckWrite(step, step.args[i], parameters[i].is_loaded);
      }
    }
    last_kernel_ = {step.module, step.entry};
  }

  // The limits of CUDA's grids (CUDA Programming Guide, compute capabilities).
  void CheckGrid(const Step& step) {
    EXPECT_GE(step.grid[0], 1u);
    EXPECT_LE(step.grid[0], 2147483647u);
    EXPECT_LE(step.grid[1], 65535u);
    EXPECT_EQ(step.grid[2], 1u);
    EXPECT_LE(step.block[0], 1024u);
  }

  void CheckRead(const Arg& arg) {
    if (arg.kind == ArgKind::kSlot) {
      const Slot& slot = artifact_.slots.at(arg.slot);
      EXPECT_TRUE(slot.role != SlotRole::kOutput ||
                  written_slots_.count(arg.slot) == 1)
          << "slot " << arg.slot << " is read before it is written";
    } else {
      CheckPlace(arg);
      EXPECT_EQ(written_.count({arg.kind, arg.offset_bytes}), 1u)
          << "area + " << arg.offset_bytes << " is read before written";
    }
  }

  // The second kernel of a split reduction may write what the first did not,
  // and names the same outputs, and a kernel may be launched in turns. A value
  // may lie in an output until a kernel loads it and writes the output. Else
  // nothing must write an output again.
  void CheckWrite(const Step& step, const Arg& arg, bool is_loaded) {
    if (arg.kind == ArgKind::kSlot) {
      EXPECT_EQ(artifact_.slots.at(arg.slot).role, SlotRole::kOutput);
      const bool is_new = written_slots_.insert(arg.slot).second;
      const bool is_done = !is_new && is_loaded;
      EXPECT_TRUE(is_new || is_done || step.entry == 1 ||
                  last_kernel_ == std::pair(step.module, step.entry))
          << "slot " << arg.slot << " is written twice";
      if (is_done) {
        EXPECT_TRUE(loaded_slots_.insert(arg.slot).second)
            << "slot " << arg.slot << " is written again after it was loaded";
      }
    } else {
      CheckPlace(arg);
      written_.insert({arg.kind, arg.offset_bytes});
    }
  }

  void CheckPlace(const Arg& arg) {
    EXPECT_TRUE(arg.kind == ArgKind::kWorkspace ||
                arg.kind == ArgKind::kPrepared);
    EXPECT_GE(arg.offset_bytes, 0);
    EXPECT_LT(arg.offset_bytes, arg.kind == ArgKind::kPrepared
                                    ? variant_.prepared_bytes
                                    : variant_.workspace_bytes);
    EXPECT_EQ(arg.offset_bytes % 256, 0);
  }

  const Artifact& artifact_;
  const Variant& variant_;
  std::pair<int, int> last_kernel_ = {-1, -1};  // module and entry
  std::set<int> written_slots_;
  std::set<int> loaded_slots_;
  std::set<std::pair<ArgKind, int64_t>> written_;  // areas, by offset
};

}  // namespace

const Toolchain& TestToolchain() {
  static const Toolchain toolchain = [] {
    absl::StatusOr<Toolchain> found = FindToolchain("", KILN_TEST_NVRTC_DIR);
    if (!found.ok()) Die(found.status());
    return *found;
  }();
  return toolchain;
}

NvrtcCompiler& TestNvrtc() {
  static NvrtcCompiler& nvrtc = [&]() -> NvrtcCompiler& {
    auto loaded = NvrtcCompiler::Load(TestToolchain());
    if (!loaded.ok()) Die(loaded.status());
    return *loaded->release();
  }();
  return nvrtc;
}

CompileRequest RequestFor(std::string_view plan_text, std::string_view target) {
  const absl::StatusOr<Plan> plan = ParsePlanText(plan_text);
  if (!plan.ok()) Die(plan.status());
  absl::StatusOr<CanonicalPlan> canonical = Canonicalize(*plan);
  if (!canonical.ok()) Die(canonical.status());
  const absl::StatusOr<Target> parsed = ParseTarget(target);
  if (!parsed.ok()) Die(parsed.status());
  return {*std::move(canonical), *parsed, TestToolchain().id};
}

absl::StatusOr<Artifact> CompileText(std::string_view plan_text,
                                     std::string_view target) {
  return CompilePlan(RequestFor(plan_text, target), &TestNvrtc());
}

std::string DescribeFailure(const absl::Status& status) {
  const ErrorDetail detail = DetailOf(status);
  return fmt::format("{}\n{}\n{}", std::string(status.message()),
                     detail.compile_log, detail.generated_source);
}

void CheckLaunchRecord(const Artifact& artifact) {
  ASSERT_FALSE(artifact.variants.empty());
  EXPECT_EQ(artifact.variants.back().requires_, Requirements{});
  for (const Variant& variant : artifact.variants) {
    LaunchRecordChecker(artifact, variant).Run();
  }
}

}  // namespace kiln
