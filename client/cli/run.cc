#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "client/cli/commands.h"
#include "client/cli/plan_file.h"
#include "client/cli/run_tensors.h"
#include "client/cli/verification.h"
#include "client/client.h"
#include "jit/plan/errors.h"
#include "jit/plan/reference.h"
#include "jit/plan/reference_convert.h"
#include "jit/plan/validate.h"

namespace kiln::cli {
namespace {

constexpr char kExamples[] = R"(
Examples:
  kiln run plan.kiln --verify
      On random inputs, on the cpu device, checked against the reference.
  kiln run plan.kiln --device cpu --repeat 20 --seed 7
  kiln run plan.kiln --input x=x.npy --input w=w.npy --output y=y.npy
      bf16 tensors travel as their bits, in .npy files of type uint16.

With --verify the exit status is 1 if an output is outside its bound.)";

struct Options {
  std::string plan;
  std::string device = "cpu";
  bool verify = false;
  int repeat = 1;
  uint64_t seed = 0;
  std::vector<std::string> inputs;   // "x=f.npy"
  std::vector<std::string> outputs;  // "y=f.npy"
};

absl::StatusOr<std::map<std::string, std::string>> ParsePairs(
    const std::vector<std::string>& texts, std::string_view option) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidField(option, "a name and a file are needed", text,
                          "NAME=FILE.npy");
    }
    pairs[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return pairs;
}

absl::StatusOr<std::string> TargetOf(Client& client,
                                     const std::string& device) {
  const absl::StatusOr<ServerInfo> info = client.GetServerInfo();
  if (!info.ok()) return info.status();
  std::string known;
  for (const DeviceDescriptor& descriptor : info->devices) {
    if (descriptor.device == device) return descriptor.target;
    known += (known.empty() ? "" : ", ") + descriptor.device;
  }
  return InvalidField("--device", "the daemon has no such device", device,
                      known);
}

// One run from compile to verdict.
class Run {
 public:
  Run(const Terminal& terminal, const Options& options, const Plan& plan,
      const std::vector<TensorDesc>& values)
      : terminal_(terminal), options_(options), plan_(plan), values_(values) {}

  // True if every output is within its bound, or none was checked.
  absl::StatusOr<bool> Execute(Client& client);

 private:
  absl::Status Launch(Session& session, const CompiledPlan& compiled,
                      const RunTensors& tensors);
  absl::StatusOr<bool> Verify(const RunTensors& tensors);
  bool Judge(const RunTensors& tensors, size_t output,
             const std::vector<double>& wanted);

  const Terminal& terminal_;
  const Options& options_;
  const Plan& plan_;
  const std::vector<TensorDesc>& values_;
  Json json_;
};

absl::StatusOr<bool> Run::Execute(Client& client) {
  const auto inputs = ParsePairs(options_.inputs, "--input");
  if (!inputs.ok()) return inputs.status();
  const auto outputs = ParsePairs(options_.outputs, "--output");
  if (!outputs.ok()) return outputs.status();
  const absl::StatusOr<std::string> target = TargetOf(client, options_.device);
  if (!target.ok()) return target.status();

  CompileOptions compile;
  compile.target = *target;
  const absl::StatusOr<CompiledPlan> compiled = client.Compile(plan_, compile);
  if (!compiled.ok()) return compiled.status();
  absl::StatusOr<Session> session = client.OpenSession();
  if (!session.ok()) return session.status();
  const absl::StatusOr<RunTensors> tensors =
      MakeTensors(*session, plan_, values_, *inputs, options_.seed);
  if (!tensors.ok()) return tensors.status();

  json_ = {{"plan", options_.plan},
           {"device", options_.device},
           {"target", *target},
           {"key", compiled->key},
           {"source", ArtifactSourceName(compiled->source)},
           {"seed", options_.seed}};
  absl::Status done = Launch(*session, *compiled, *tensors);
  if (done.ok()) done = SaveOutputs(*tensors, *outputs);
  if (!done.ok()) return done;
  const absl::StatusOr<bool> right =
      options_.verify ? Verify(*tensors) : absl::StatusOr<bool>(true);
  if (right.ok()) terminal_.PrintJson("kiln.run/1", json_);
  return right;
}

absl::Status Run::Launch(Session& session, const CompiledPlan& compiled,
                         const RunTensors& tensors) {
  const Bindings bindings = BindAll(tensors);
  ExecuteOptions execute;
  execute.device = options_.device;
  execute.parameter_version = 1;
  std::vector<int64_t> times_us;
  for (int i = 0; i < options_.repeat; ++i) {
    const absl::StatusOr<ExecuteTiming> timing =
        session.Execute(compiled, bindings, execute);
    if (!timing.ok()) return timing.status();
    times_us.push_back(timing->execute_us);
  }
  std::sort(times_us.begin(), times_us.end());
  const int64_t median_us = times_us[times_us.size() / 2];
  terminal_.Print(fmt::format(
      "{}  {}  {}  {} run{}, median {:.3f} ms, best {:.3f} ms\n",
      compiled.key.substr(0, 12), options_.device,
      ArtifactSourceName(compiled.source), options_.repeat,
      options_.repeat == 1 ? "" : "s", median_us / 1e3, times_us[0] / 1e3));
  json_["repeat"] = options_.repeat;
  json_["execute_us"] = {{"median", median_us}, {"best", times_us[0]}};
  return absl::OkStatus();
}

absl::StatusOr<bool> Run::Verify(const RunTensors& tensors) {
  std::vector<const void*> inputs;
  for (const SharedBuffer& buffer : tensors.inputs) {
    inputs.push_back(buffer.data());
  }
  std::vector<std::vector<double>> wanted;
  std::vector<double*> wanted_data;
  for (const TensorDesc& desc : tensors.output_descs) {
    wanted.emplace_back(NumElements(desc.dims));
    wanted_data.push_back(wanted.back().data());
  }
  const absl::Status evaluated =
      EvaluateReferenceToDouble(plan_, inputs, wanted_data);
  if (!evaluated.ok()) return evaluated;

  json_["outputs"] = Json::array();
  bool right = true;
  for (size_t i = 0; i < wanted.size(); ++i) {
    right = Judge(tensors, i, wanted[i]) && right;
  }
  json_["verified"] = right;
  return right;
}

bool Run::Judge(const RunTensors& tensors, size_t output,
                const std::vector<double>& wanted) {
  const TensorDesc& desc = tensors.output_descs[output];
  std::vector<double> got(wanted.size());
  ElementsToDouble(desc.dtype, tensors.outputs[output].data(),
                   static_cast<int64_t>(got.size()), got.data());
  const Deviation deviation = Compare(got, wanted);
  const Bound bound =
      BoundOf(plan_, values_, desc.dtype, options_.device == "cpu");
  const bool right = bound.Holds(deviation);

  using Style = Terminal::Style;
  std::string text = fmt::format(
      "{}: {}  max error {:.3g}, relative norm {:.3g} (bound {:.3g})  {}\n",
      tensors.output_names[output], ToString(desc), deviation.max_abs,
      deviation.relative_norm, bound.relative_norm,
      right ? terminal_.Styled(Style::kGood, "ok")
            : terminal_.Styled(Style::kBad, "WRONG"));
  if (!right) {
    text += fmt::format(
        "  worst element {}: {} instead of {}; {} differ in being finite\n",
        deviation.max_at, deviation.got, deviation.wanted,
        deviation.unequal_special);
  }
  terminal_.Print(text);
  json_["outputs"].push_back({{"name", tensors.output_names[output]},
                              {"desc", ToString(desc)},
                              {"max_abs_error", deviation.max_abs},
                              {"relative_norm_error", deviation.relative_norm},
                              {"bound", bound.relative_norm},
                              {"ok", right}});
  return right;
}

ExitCode RunCommand(const Context& context, const Options& options) {
  const Terminal terminal(context.terminal);
  const auto fail = [&terminal](const absl::Status& status, ExitCode code) {
    terminal.Error(status);
    return code;
  };
  const absl::StatusOr<Plan> plan = LoadPlan(options.plan);
  if (!plan.ok()) return fail(plan.status(), PlanExitCodeOf(plan.status()));
  const auto values = ValidatePlan(*plan);
  if (!values.ok()) return fail(values.status(), kCompileError);
  absl::StatusOr<Client> client = Client::Connect(context.connect);
  if (!client.ok()) return fail(client.status(), ExitCodeOf(client.status()));
  const absl::StatusOr<bool> right =
      Run(terminal, options, *plan, *values).Execute(*client);
  if (!right.ok()) return fail(right.status(), ExitCodeOf(right.status()));
  return *right ? kOk : kFailure;
}

}  // namespace

void AddRunCommand(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("run", "Compile a plan and execute it on a device");
  command->footer(kExamples);
  command->fallthrough();
  const auto options = std::make_shared<Options>();
  command->add_option("PLAN", options->plan, "Plan file, or -")->required();
  command->add_option("--device", options->device, "cpu or cuda:N")
      ->capture_default_str();
  command->add_flag("--verify", options->verify,
                    "Check the outputs against the reference in double");
  command->add_option("--repeat", options->repeat, "Execute so many times")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of random inputs")
      ->capture_default_str();
  command
      ->add_option("--input", options->inputs, "Read an input: NAME=FILE.npy")
      ->type_name("NAME=FILE");
  command
      ->add_option("--output", options->outputs,
                   "Write an output: NAME=FILE.npy")
      ->type_name("NAME=FILE");
  command->callback([&chosen, options] {
    chosen = [options](const Context& context) {
      return RunCommand(context, *options);
    };
  });
}

}  // namespace kiln::cli
