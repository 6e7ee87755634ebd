#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "client/cli/commands.h"
#include "client/cli/launch.h"
#include "client/cli/plan_file.h"
#include "client/cli/run_tensors.h"
#include "client/cli/validators.h"
#include "client/cli/verification.h"
#include "client/client.h"
#include "jit/plan/canonical.h"
#include "jit/plan/errors.h"
#include "jit/plan/reference.h"
#include "jit/plan/reference_convert.h"
#include "jit/plan/validate.h"

namespace kiln::cli {
namespace {

constexpr char kRunExamples[] = R"(
Examples:
  kiln run plan.kiln --verify
      On random inputs, on the cpu device, checked against the reference.
  kiln run plan.kiln --device cuda:0 --verify --repeat 20 --seed 7
      In the daemon, on GPU memory of this process.
  kiln run plan.kiln --device cuda:0 --verify --client-side
      The same machine code, launched by this process itself.
  kiln run plan.kiln --input x=x.npy --input w=w.npy --output y=y.npy
      bf16 tensors travel as their bits, in .npy files of type uint16.

With --verify the exit status is 1 if an output is outside its bound.)";

struct RunOptions {
  std::string plan;
  std::string device = "cpu";
  bool verify = false;
  bool client_side = false;
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
    if (equals == std::string::npos || equals == 0 ||
        equals + 1 == text.size()) {
      return InvalidField(option, "a name and a file are needed", text,
                          "NAME=FILE.npy");
    }
    const std::string name = text.substr(0, equals);
    if (!pairs.emplace(name, text.substr(equals + 1)).second) {
      return InvalidField(option, "a name is given twice", name,
                          "each name once");
    }
  }
  return pairs;
}

absl::StatusOr<DeviceDescriptor> FindDevice(Client& client,
                                            const std::string& device) {
  const absl::StatusOr<ServerInfo> info = client.GetServerInfo();
  if (!info.ok()) return info.status();
  std::string known;
  for (const DeviceDescriptor& descriptor : info->devices) {
    if (descriptor.device == device) return descriptor;
    known += (known.empty() ? "" : ", ") + descriptor.device;
  }
  return InvalidField("--device", "the daemon has no such device", device,
                      known);
}

// One run from compile to verdict.
class PlanRun {
 public:
  PlanRun(const Terminal& terminal, const RunOptions& options,
          const std::string& cuda_driver, const Plan& plan,
          const std::vector<TensorDesc>& values)
      : terminal_(terminal),
        options_(options),
        cuda_driver_(cuda_driver),
        plan_(plan),
        values_(values) {}

  // True if every output is within its bound, or none was checked.
  absl::StatusOr<bool> Execute(Client& client);

 private:
  absl::StatusOr<std::vector<int64_t>> Launch(Client& client,
                                              const DeviceDescriptor& device,
                                              const CompiledPlan& compiled,
                                              RunTensors& tensors) const;
  void Report(const CompiledPlan& compiled, std::vector<int64_t> times_us);
  absl::StatusOr<bool> Verify(const RunTensors& tensors);
  bool Judge(const RunTensor& output, const std::vector<double>& wanted);

  const Terminal& terminal_;
  const RunOptions& options_;
  const std::string& cuda_driver_;
  const Plan& plan_;
  const std::vector<TensorDesc>& values_;
  Json json_;
};

absl::StatusOr<bool> PlanRun::Execute(Client& client) {
  const auto inputs = ParsePairs(options_.inputs, "--input");
  if (!inputs.ok()) return inputs.status();
  const auto outputs = ParsePairs(options_.outputs, "--output");
  if (!outputs.ok()) return outputs.status();
  const auto device = FindDevice(client, options_.device);
  if (!device.ok()) return device.status();
  absl::StatusOr<RunTensors> tensors =
      MakeTensors(plan_, values_, *inputs, options_.seed);
  if (!tensors.ok()) return tensors.status();
  const absl::Status named = CheckOutputNames(*tensors, *outputs);
  if (!named.ok()) return named;

  CompileOptions compile;
  compile.target = device->target;
  compile.include_artifact = options_.client_side;
  const absl::StatusOr<CompiledPlan> compiled = client.Compile(plan_, compile);
  if (!compiled.ok()) return compiled.status();
  const auto times_us = Launch(client, *device, *compiled, *tensors);
  if (!times_us.ok()) return times_us.status();
  Report(*compiled, *times_us);
  const absl::Status saved = SaveOutputs(*tensors, *outputs);
  if (!saved.ok()) return saved;
  const absl::StatusOr<bool> right =
      options_.verify ? Verify(*tensors) : absl::StatusOr<bool>(true);
  if (right.ok()) terminal_.PrintJson("kiln.run/1", json_);
  return right;
}

absl::StatusOr<std::vector<int64_t>> PlanRun::Launch(
    Client& client, const DeviceDescriptor& device,
    const CompiledPlan& compiled, RunTensors& tensors) const {
  if (!options_.client_side) {
    return LaunchInDaemon(client, compiled, device.device, options_.repeat,
                          tensors);
  }
  if (device.uuid.empty()) {
    return InvalidField("--client-side", "needs a GPU", device.device,
                        "--device cuda:N");
  }
  const auto context = client::CudaContext::Open(device.uuid, cuda_driver_);
  if (!context.ok()) return context.status();
  return LaunchHere(*context, compiled, options_.repeat, tensors);
}

void PlanRun::Report(const CompiledPlan& compiled,
                     std::vector<int64_t> times_us) {
  std::sort(times_us.begin(), times_us.end());
  const int64_t median_us = times_us[times_us.size() / 2];
  terminal_.Print(fmt::format(
      "{}  {}  {}  {} run{}, median {:.3f} ms, best {:.3f} ms\n",
      compiled.key.substr(0, 12), options_.device,
      ArtifactSourceName(compiled.source), options_.repeat,
      options_.repeat == 1 ? "" : "s", median_us / 1e3, times_us[0] / 1e3));
  json_ = {{"plan", options_.plan},
           {"device", options_.device},
           {"client_side", options_.client_side},
           {"target", compiled.target},
           {"key", compiled.key},
           {"source", ArtifactSourceName(compiled.source)},
           {"seed", options_.seed},
           {"repeat", options_.repeat},
           {"execute_us", {{"median", median_us}, {"best", times_us[0]}}}};
}

absl::StatusOr<bool> PlanRun::Verify(const RunTensors& tensors) {
  // The one form that is compiled: of an op that no output needs, a convolution
  // of 16 bits say, nothing is rounded.
  const absl::StatusOr<CanonicalPlan> canonical = Canonicalize(plan_);
  if (!canonical.ok()) return canonical.status();
  std::vector<const void*> inputs(canonical->plan.inputs.size());
  for (size_t i = 0; i < tensors.inputs.size(); ++i) {
    const int slot = canonical->slot_of_input[i];
    if (slot >= 0) inputs[slot] = tensors.inputs[i].elements.data();
  }
  std::vector<std::vector<double>> wanted;
  std::vector<double*> wanted_data;
  for (const RunTensor& output : tensors.outputs) {
    wanted.emplace_back(NumElements(output.desc.dims));
    wanted_data.push_back(wanted.back().data());
  }
  const absl::Status evaluated =
      EvaluateReferenceToDouble(canonical->plan, inputs, wanted_data);
  if (!evaluated.ok()) return evaluated;

  json_["outputs"] = Json::array();
  bool right = true;
  for (size_t i = 0; i < wanted.size(); ++i) {
    right = Judge(tensors.outputs[i], wanted[i]) && right;
  }
  json_["verified"] = right;
  return right;
}

bool PlanRun::Judge(const RunTensor& output,
                    const std::vector<double>& wanted) {
  const TensorDesc& desc = output.desc;
  std::vector<double> got(wanted.size());
  ElementsToDouble(desc.dtype, output.elements.data(),
                   static_cast<int64_t>(got.size()), got.data());
  const Deviation deviation = Compare(desc.dtype, got, wanted);
  const Bound bound =
      BoundOf(plan_, values_, desc.dtype, options_.device == "cpu");
  const bool right = bound.Holds(deviation);

  using Style = Terminal::Style;
  std::string text = fmt::format(
      "{}: {}  max error {:.3g}, relative norm {:.3g} (bound {:.3g})  {}\n",
      output.name, ToString(desc), deviation.max_abs, deviation.relative_norm,
      bound.relative_norm,
      right ? terminal_.Styled(Style::kGood, "ok")
            : terminal_.Styled(Style::kBad, "WRONG"));
  if (!right) {
    text += fmt::format(
        "  worst element {}: {} instead of {}; {} differ in being finite\n",
        deviation.max_at, deviation.got, deviation.wanted,
        deviation.unequal_special);
  }
  terminal_.Print(text);
  json_["outputs"].push_back({{"name", output.name},
                              {"desc", ToString(desc)},
                              {"max_abs_error", deviation.max_abs},
                              {"relative_norm_error", deviation.relative_norm},
                              {"bound", bound.relative_norm},
                              {"ok", right}});
  return right;
}

ExitCode RunCommand(const Context& context, const RunOptions& options) {
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
      PlanRun(terminal, options, context.connect.cuda_driver, *plan, *values)
          .Execute(*client);
  if (!right.ok()) return fail(right.status(), ExitCodeOf(right.status()));
  return *right ? kOk : kFailure;
}

}  // namespace

void AddRunCommand(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("run", "Compile a plan and execute it on a device");
  command->footer(kRunExamples);
  command->fallthrough();
  const auto options = std::make_shared<RunOptions>();
  command->add_option("PLAN", options->plan, "Plan file, or -")
      ->required()
      ->check(NotEmpty());
  command->add_option("--device", options->device, "cpu or cuda:N")
      ->capture_default_str();
  command->add_flag("--verify", options->verify,
                    "Check the outputs against the reference in double");
  command->add_flag("--client-side", options->client_side,
                    "Launch from this process, not in the daemon");
  command->add_option("--repeat", options->repeat, "Execute so many times")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of random inputs")
      ->check(NotNegative())
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
