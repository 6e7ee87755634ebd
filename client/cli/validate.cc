#include <fmt/format.h>

#include <memory>

#include "client/cli/commands.h"
#include "client/cli/plan_file.h"
#include "client/cli/validators.h"
#include "jit/plan/canonical.h"
#include "jit/plan/plan_text.h"

namespace kiln::cli {
namespace {

constexpr char kValidateExamples[] = R"(
Examples:
  kiln validate plan.kiln
  printf 'input x: f32[4]\ny = relu(x)\noutput y\n' | kiln validate -

Needs no daemon. Prints the canonical form, which is what is compiled and what
keys are made of.)";

TensorDesc OutputDesc(const CanonicalPlan& canonical, size_t output) {
  const PlanOutput& entry = canonical.plan.outputs[output];
  return {entry.dtype, canonical.values[entry.value.index].dims};
}

Json ToJson(const std::string& path, const CanonicalPlan& canonical) {
  Json outputs = Json::array();
  for (size_t i = 0; i < canonical.plan.outputs.size(); ++i) {
    outputs.push_back(ToString(OutputDesc(canonical, i)));
  }
  return {{"plan", path},
          {"valid", true},
          {"canonical", ToText(canonical.plan)},
          {"outputs", outputs},
          {"slot_of_input", canonical.slot_of_input},
          {"slot_of_output", canonical.slot_of_output}};
}

ExitCode Validate(const Context& context, const std::string& path) {
  const Terminal terminal(context.terminal);
  const absl::StatusOr<Plan> plan = LoadPlan(path);
  if (!plan.ok()) {
    terminal.Error(plan.status());
    return PlanExitCodeOf(plan.status());
  }
  const absl::StatusOr<CanonicalPlan> canonical = Canonicalize(*plan);
  if (!canonical.ok()) {
    terminal.Error(canonical.status());
    return PlanExitCodeOf(canonical.status());
  }
  terminal.Print(ToText(canonical->plan));
  terminal.PrintJson("kiln.validate/1", ToJson(path, *canonical));
  return kOk;
}

}  // namespace

void AddValidateCommand(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "validate", "Check a plan and show its canonical form");
  command->footer(kValidateExamples);
  command->fallthrough();
  const auto path = std::make_shared<std::string>();
  command->add_option("PLAN", *path, "Plan file, or -")
      ->required()
      ->check(NotEmpty());
  command->callback([&chosen, path] {
    chosen = [path](const Context& context) {
      return Validate(context, *path);
    };
  });
}

}  // namespace kiln::cli
