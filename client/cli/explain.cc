#include <fmt/format.h>

#include <memory>

#include "client/cli/commands.h"
#include "client/cli/plan_file.h"
#include "client/cli/schedule_text.h"
#include "client/cli/tuning_text.h"
#include "client/cli/validators.h"
#include "client/connection.h"
#include "proto/plan_converter.h"

namespace kiln::cli {
namespace {

constexpr char kExplainExamples[] = R"(
Examples:
  kiln explain plan.kiln --target a100
  kiln explain plan.kiln --target a100 -v
      Also prints the key text, which the key is the SHA-256 of.
  kiln explain plan.kiln --target h100-sxm,a100 --schedule
      Also prints how the plan is cut into kernels, what else was considered
      for each, and what the models predict of it. Needs no GPU.

Compiles nothing. The exit status is 0 for a hit and for a miss.)";

struct ExplainOptions {
  std::string plan;
  std::vector<std::string> targets = {"cpu"};
  std::string variant;
  bool schedule = false;
};

std::string SourceName(v1::Source source) {
  if (source == v1::MEMORY) return "memory";
  if (source == v1::DISK) return "disk";
  return "";
}

Json ExplanationToJson(const std::string& target,
                       const v1::ExplainResponse& response) {
  Json differences = Json::array();
  for (const v1::KeyDifference& difference : response.differences()) {
    differences.push_back({{"field", difference.field()},
                           {"wanted", difference.wanted()},
                           {"found", difference.found()}});
  }
  Json json = {
      {"target", target}, {"key", response.key()}, {"hit", response.hit()}};
  if (response.hit()) json["source"] = SourceName(response.source());
  if (!response.nearest_key().empty()) {
    json["nearest_key"] = response.nearest_key();
  }
  json["differences"] = differences;
  json["variant"] = response.variant();
  if (response.idle_choices_size() > 0) {
    json["idle_choices"] = std::vector<std::string>(
        response.idle_choices().begin(), response.idle_choices().end());
  }
  if (response.has_tuning()) json["tuning"] = TuningJson(response.tuning());
  json["key_text"] = response.key_text();
  if (response.has_schedule()) {
    json["schedule"] = ScheduleJson(response.schedule());
  }
  return json;
}

std::string ExplanationToText(const Terminal& terminal,
                              const std::string& target,
                              const v1::ExplainResponse& response) {
  using Style = Terminal::Style;
  if (response.hit()) {
    return fmt::format(
        "{}  {:<12} {}\n", response.key(), target,
        terminal.Styled(Style::kGood,
                        "hit in " + SourceName(response.source())));
  }
  std::string text = fmt::format("{}  {:<12} {}\n", response.key(), target,
                                 terminal.Styled(Style::kDoubtful, "miss"));
  if (response.nearest_key().empty()) {
    return text + "  the cache is empty\n";
  }
  text += fmt::format("  differs from the nearest entry, {}, in:\n",
                      response.nearest_key().substr(0, 12));
  for (const v1::KeyDifference& difference : response.differences()) {
    // Of the plan, only the first line that differs is named.
    const bool is_plan = difference.field() == "plan";
    text += fmt::format("    {}: {} (wanted) != {} (found)\n",
                        is_plan ? "plan, first" : difference.field(),
                        difference.wanted(), difference.found());
  }
  return text;
}

ExitCode ExplainAll(const Terminal& terminal,
                    const client::Connection& connection, const Plan& plan,
                    const std::vector<std::string>& targets,
                    const ExplainOptions& options) {
  Json results = Json::array();
  for (const std::string& target : targets) {
    v1::ExplainRequest request;
    *request.mutable_plan() = ToProto(plan);
    request.set_target(target);
    request.set_include_schedule(options.schedule);
    request.set_variant(options.variant);
    const absl::StatusOr<v1::ExplainResponse> response = connection.Call(
        connection.compiler(), &v1::Compiler::Stub::Explain, request);
    if (!response.ok()) {
      terminal.Error(response.status());
      return PlanExitCodeOf(response.status());
    }
    terminal.Print(ExplanationToText(terminal, target, *response));
    if (terminal.verbose()) terminal.Print(response->key_text());
    for (const std::string& choice : response->idle_choices()) {
      terminal.Print(fmt::format(
          "  {} changes nothing: no kernel of the plan has such a choice\n",
          choice));
    }
    if (response->has_tuning()) {
      terminal.Print(TuningText(terminal, response->tuning()));
    } else if (options.schedule && options.variant.empty()) {
      terminal.Print("  as the models predict: no tuning is stored\n");
    }
    if (response->has_schedule()) {
      terminal.Print(ScheduleText(terminal, response->schedule()));
    }
    results.push_back(ExplanationToJson(target, *response));
  }
  terminal.PrintJson("kiln.explain/1",
                     {{"plan", options.plan}, {"results", results}});
  return kOk;
}

ExitCode Explain(const Context& context, const ExplainOptions& options) {
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
  const auto connection = client::Connection::Open(context.connect);
  if (!connection.ok()) {
    terminal.Error(connection.status());
    return ExitCodeOf(connection.status());
  }
  return ExplainAll(terminal, **connection, *plan, *targets, options);
}

}  // namespace

void AddExplainCommand(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "explain", "Would it hit the cache? How is it scheduled, and why?");
  command->footer(kExplainExamples);
  command->fallthrough();
  const auto options = std::make_shared<ExplainOptions>();
  command->add_option("PLAN", options->plan, "Plan file, or -")
      ->required()
      ->check(NotEmpty());
  command
      ->add_option("--target", options->targets, "Targets, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--variant", options->variant, kVariantHelp)
      ->check(PlainText());
  command->add_flag("--schedule", options->schedule,
                    "Print kernels, candidates and predicted times");
  command->callback([&chosen, options] {
    chosen = [options](const Context& context) {
      return Explain(context, *options);
    };
  });
}

}  // namespace kiln::cli
