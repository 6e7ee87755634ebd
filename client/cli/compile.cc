#include <fmt/format.h>

#include <memory>

#include "client/cli/artifact_files.h"
#include "client/cli/commands.h"
#include "client/cli/plan_file.h"
#include "client/cli/tuning_text.h"
#include "client/cli/validators.h"
#include "client/client.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

constexpr char kCompileExamples[] = R"(
Examples:
  kiln compile plan.kiln --target h100-sxm,a100
  kiln compile plan.kiln --target sm_80/108 -o out/
      Also writes artifact, cubins and sources to out/.
  kiln compile plan.kiln --target l40s --show
      Prints the generated CUDA.
  kiln compile plan.kiln --target h100-sxm --variant eager
      An operation at a time by kernels for any plan: slow, there at once.
  kiln compile plan.kiln --target h100-sxm --hit-only
      Fails, saying what differs, unless the kernel is cached.)";

struct CompileArguments {
  std::string plan;
  std::vector<std::string> targets;
  std::string output_dir;
  std::string variant;
  bool show = false;
  bool hit_only = false;
};

Json TimingJson(const CompilePhases& timing) {
  return {{"key", timing.key_us},     {"lookup", timing.lookup_us},
          {"queue", timing.queue_us}, {"generate", timing.generate_us},
          {"nvrtc", timing.nvrtc_us}, {"store", timing.store_us},
          {"total", timing.total_us}};
}

std::string TimingText(const CompiledPlan& compiled) {
  const CompilePhases& timing = compiled.timing;
  return fmt::format(
      "{}: key {} us, lookup {} us, queue {} us, generate {} us, nvrtc {} us, "
      "store {} us",
      compiled.target, timing.key_us, timing.lookup_us, timing.queue_us,
      timing.generate_us, timing.nvrtc_us, timing.store_us);
}

// Compiles for one target, prints, and returns the JSON of the result.
absl::StatusOr<Json> CompileFor(const Terminal& terminal, Client& client,
                                const Plan& plan, const std::string& target,
                                const CompileArguments& options) {
  CompileOptions compile;
  compile.target = target;
  compile.hit_only = options.hit_only;
  compile.variant = options.variant;
  compile.include_artifact = true;
  compile.include_source = options.show || !options.output_dir.empty();
  const absl::StatusOr<CompiledPlan> compiled = client.Compile(plan, compile);
  if (!compiled.ok()) return compiled.status();
  v1::Artifact artifact;
  if (!artifact.ParseFromString(compiled->artifact)) {
    return absl::InternalError("The daemon sends an artifact that is none");
  }

  terminal.Print(options.show
                     ? SourcesOf(artifact)
                     : fmt::format("{}  {:<12} {:<8} {:>8.2f} ms\n",
                                   compiled->key, compiled->target,
                                   ArtifactSourceName(compiled->source),
                                   compiled->timing.total_us / 1e3));
  if (terminal.verbose()) terminal.Note(TimingText(*compiled));
  Json json = {{"target", compiled->target},
               {"key", compiled->key},
               {"source", ArtifactSourceName(compiled->source)},
               {"timing_us", TimingJson(compiled->timing)},
               {"artifact_bytes", compiled->artifact.size()},
               {"kernels", KernelsJson(artifact)}};
  if (options.show) json["generated_source"] = SourcesOf(artifact);
  if (options.output_dir.empty()) return json;
  const auto files =
      WriteArtifact(options.output_dir, StemOf(options.plan), compiled->target,
                    compiled->artifact, artifact);
  if (!files.ok()) return files.status();
  for (const std::string& file : *files) terminal.Note("wrote " + file);
  json["files"] = *files;
  return json;
}

// The status of a HIT_ONLY miss, with what to do about it.
absl::Status WithHint(const absl::Status& status,
                      const CompileArguments& options) {
  ErrorDetail detail = DetailOf(status);
  if (!absl::IsNotFound(status) || !options.hit_only || !detail.hint.empty()) {
    return status;
  }
  detail.hint = "Compile it without --hit-only, or prewarm it";
  return WithDetail(status, detail);
}

ExitCode CompileAll(const Terminal& terminal, Client& client, const Plan& plan,
                    const std::vector<std::string>& targets,
                    const CompileArguments& options) {
  Json results = Json::array();
  size_t failures = 0;
  ExitCode worst = kOk;
  for (const std::string& target : targets) {
    const absl::StatusOr<Json> result =
        CompileFor(terminal, client, plan, target, options);
    if (result.ok()) {
      results.push_back(*result);
      continue;
    }
    ++failures;
    const absl::Status status = WithHint(result.status(), options);
    worst = PlanExitCodeOf(status);
    if (!terminal.json()) terminal.Error(status);
    results.push_back({{"target", target}, {"error", ErrorJson(status)}});
  }
  terminal.PrintJson("kiln.compile/1",
                     {{"plan", options.plan}, {"results", results}});
  return failures > 0 && failures < targets.size() ? kPartly : worst;
}

ExitCode Compile(const Context& context, const CompileArguments& options) {
  const Terminal terminal(context.terminal);
  const auto targets = ResolveTargets(options.targets, terminal);
  if (!targets.ok()) {
    terminal.Error(targets.status());
    return kUsage;
  }
  const absl::StatusOr<Plan> plan = LoadPlan(options.plan);
  if (!plan.ok()) {
    terminal.Error(plan.status());
    return PlanExitCodeOf(plan.status());
  }
  absl::StatusOr<Client> client = Client::Connect(context.connect);
  if (!client.ok()) {
    terminal.Error(client.status());
    return ExitCodeOf(client.status());
  }
  return CompileAll(terminal, *client, *plan, *targets, options);
}

}  // namespace

void AddCompileCommand(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("compile", "Compile a plan, or find it in the cache");
  command->footer(kCompileExamples);
  command->fallthrough();
  const auto options = std::make_shared<CompileArguments>();
  command->add_option("PLAN", options->plan, "Plan file, or -")
      ->required()
      ->check(NotEmpty());
  command
      ->add_option("--target", options->targets,
                   "Targets, separated by commas: h100-sxm, sm_80/108, cpu")
      ->delimiter(',')
      ->required();
  command
      ->add_option("-o,--output", options->output_dir,
                   "Write artifact, cubins and sources to this folder")
      ->check(NotEmpty());
  command->add_option("--variant", options->variant, kVariantHelp)
      ->check(PlainText());
  command->add_flag("--show", options->show, "Print the generated CUDA");
  command->add_flag("--hit-only", options->hit_only,
                    "Fail instead of compiling");
  command->callback([&chosen, options] {
    chosen = [options](const Context& context) {
      return Compile(context, *options);
    };
  });
}

}  // namespace kiln::cli
