#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <memory>

#include "client/cli/commands.h"
#include "client/cli/daemon_timer.h"
#include "client/cli/plan_file.h"
#include "client/cli/tuning_device.h"
#include "client/cli/tuning_measurement.h"
#include "client/cli/tuning_text.h"
#include "client/cli/validators.h"
#include "client/client.h"
#include "client/connection.h"
#include "jit/plan/validate.h"
#include "proto/plan_converter.h"

namespace kiln::cli {
namespace {

constexpr char kTuneExamples[] = R"(
Examples:
  kiln tune plan.kiln
      Compiles what is worth measuring, measures it on cuda:0, keeps the winner.
  kiln tune plan.kiln --target h100-sxm --runs 100
      On the first device of the daemon that has this target.
  kiln explain plan.kiln --target h100-sxm
      Says where the choice came from.

From then on the plan compiles to the winner, also on hosts without a GPU that
have this cache directory. Keep the GPU idle meanwhile.)";

struct TuneOptions {
  std::string plan;
  std::string device;
  std::string target;
  int runs = 50;
};

// One tuning from device to record.
class TuningRun {
 public:
  TuningRun(const Terminal& terminal, const TuneOptions& options,
            const ConnectOptions& connect, const Plan& plan,
            const std::vector<TensorDesc>& values)
      : terminal_(terminal),
        options_(options),
        connect_(connect),
        plan_(plan),
        values_(values) {}

  absl::Status Execute(const client::Connection& connection, Client& client);

 private:
  absl::StatusOr<std::vector<std::string>> Variants(
      const client::Connection& connection) const;
  void CompileAll(Client& client, const std::vector<std::string>& names);
  absl::Status Measure(Client& client);
  void Describe(int winner);
  absl::Status Store(const client::Connection& connection);
  void ShowRound(int done, int rounds) const;

  const Terminal& terminal_;
  const TuneOptions& options_;
  const ConnectOptions& connect_;
  const Plan& plan_;
  const std::vector<TensorDesc>& values_;
  DeviceDescriptor device_;
  std::vector<TunedVariant> variants_;
  v1::Tuning tuning_;
};

absl::StatusOr<std::vector<std::string>> TuningRun::Variants(
    const client::Connection& connection) const {
  v1::ExplainRequest request;
  *request.mutable_plan() = ToProto(plan_);
  request.set_target(device_.target);
  request.set_variant("auto");
  request.set_include_schedule(true);
  const absl::StatusOr<v1::ExplainResponse> response = connection.Call(
      connection.compiler(), &v1::Compiler::Stub::Explain, request);
  if (!response.ok()) return response.status();
  const auto& names = response->schedule().alternatives();
  return std::vector<std::string>(names.begin(), names.end());
}

void TuningRun::CompileAll(Client& client,
                           const std::vector<std::string>& names) {
  std::vector<std::future<absl::StatusOr<CompiledPlan>>> compiling;
  compiling.reserve(names.size());
  for (const std::string& name : names) {
    compiling.push_back(std::async(std::launch::async, [&, name] {
      CompileOptions options;
      options.target = device_.target;
      options.variant = name;
      return client.Compile(plan_, options);
    }));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    variants_.push_back({names[i], compiling[i].get(), {}, {}});
  }
}

absl::Status TuningRun::Measure(Client& client) {
  absl::StatusOr<std::unique_ptr<DaemonTimer>> timer =
      DaemonTimer::Make(client, plan_, values_, device_.device);
  if (!timer.ok()) return timer.status();
  tuning_.set_rotated_sets((*timer)->sets());
  MeasureInTurn(
      **timer, options_.runs,
      [this](int done, int rounds) { ShowRound(done, rounds); }, variants_);
  return absl::OkStatus();
}

void TuningRun::ShowRound(int done, int rounds) const {
  if (!terminal_.draws_progress()) return;
  std::fprintf(stderr, "\r  round %d/%d%s", done, rounds,
               done == rounds ? "\r\x1b[K" : "");
  std::fflush(stderr);
}

void TuningRun::Describe(int winner) {
  tuning_.set_variant(variants_[winner].variant);
  tuning_.set_device(device_.name);
  DescribeDriver(device_.uuid, connect_.cuda_driver, &tuning_);
  tuning_.set_measured_unix_ms(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  for (const TunedVariant& variant : variants_) {
    v1::TuningMeasurement* const measured = tuning_.add_measured();
    measured->set_variant(variant.variant);
    const absl::Status& status =
        variant.plan.ok() ? variant.status : variant.plan.status();
    if (variant.plan.ok()) measured->set_key(variant.plan->key);
    if (!status.ok()) {
      measured->set_error(std::string(status.message()));
      continue;
    }
    measured->set_runs(static_cast<int>(variant.times_us.size()));
    measured->set_median_us(variant.Quartile(2));
    measured->set_low_us(variant.Quartile(1));
    measured->set_high_us(variant.Quartile(3));
  }
}

absl::Status TuningRun::Store(const client::Connection& connection) {
  v1::StoreTuningRequest request;
  *request.mutable_plan() = ToProto(plan_);
  request.set_target(device_.target);
  *request.mutable_tuning() = tuning_;
  const absl::StatusOr<v1::StoreTuningResponse> response = connection.Call(
      connection.compiler(), &v1::Compiler::Stub::StoreTuning, request);
  if (!response.ok()) return response.status();
  terminal_.Print(fmt::format("{}  {}\n{}", response->key(), device_.target,
                              TuningText(terminal_, tuning_)));
  terminal_.PrintJson("kiln.tune/1", {{"plan", options_.plan},
                                      {"device", device_.device},
                                      {"target", device_.target},
                                      {"key", response->key()},
                                      {"tuning", TuningJson(tuning_)}});
  return absl::OkStatus();
}

absl::Status TuningRun::Execute(const client::Connection& connection,
                                Client& client) {
  const absl::StatusOr<ServerInfo> info = client.GetServerInfo();
  if (!info.ok()) return info.status();
  const absl::StatusOr<DeviceDescriptor> device =
      FindTuningDevice(*info, options_.device, options_.target);
  if (!device.ok()) return device.status();
  device_ = *device;
  const absl::StatusOr<std::vector<std::string>> names = Variants(connection);
  if (!names.ok()) return names.status();
  terminal_.Note(fmt::format("compiling {} variants for {}", names->size(),
                             device_.target));
  CompileAll(client, *names);
  if (!variants_.front().plan.ok()) return variants_.front().plan.status();
  terminal_.Note(fmt::format("measuring on {}, {} runs each", device_.name,
                             options_.runs));
  const absl::Status measured = Measure(client);
  if (!measured.ok()) return measured;
  const int winner = ChooseWinner(variants_);
  if (winner < 0) return variants_.front().status;
  Describe(winner);
  return Store(connection);
}

ExitCode TuneCommand(const Context& context, TuneOptions options) {
  const Terminal terminal(context.terminal);
  if (!options.target.empty()) {
    const auto targets = ResolveTargets({options.target}, terminal);
    if (!targets.ok()) {
      terminal.Error(targets.status());
      return kUsage;
    }
    options.target = targets->front();
  }
  const absl::StatusOr<Plan> plan = LoadPlan(options.plan);
  if (!plan.ok()) {
    terminal.Error(plan.status());
    return PlanExitCodeOf(plan.status());
  }
  const auto values = ValidatePlan(*plan);
  absl::StatusOr<Client> client = Client::Connect(context.connect);
  const auto connection = client::Connection::Open(context.connect);
  const absl::Status connected =
      client.ok() ? connection.status() : client.status();
  if (!values.ok() || !connected.ok()) {
    terminal.Error(values.ok() ? connected : values.status());
    return values.ok() ? ExitCodeOf(connected) : kCompileError;
  }
  const absl::Status tuned =
      TuningRun(terminal, options, context.connect, *plan, *values)
          .Execute(**connection, *client);
  if (tuned.ok()) return kOk;
  terminal.Error(tuned);
  return ExitCodeOf(tuned);
}

}  // namespace

void AddTuneCommand(CLI::App& app, Command& chosen) {
  CLI::App* command = app.add_subcommand(
      "tune", "Measure the candidates of a plan on a GPU, keep the fastest");
  command->footer(kTuneExamples);
  command->fallthrough();
  const auto options = std::make_shared<TuneOptions>();
  command->add_option("PLAN", options->plan, "Plan file, or -")
      ->required()
      ->check(NotEmpty());
  command->add_option("--device", options->device,
                      "cuda:N (default: cuda:0, or the first with --target)");
  command->add_option("--target", options->target,
                      "What the device must be: h100-sxm, sm_80/108");
  command->add_option("--runs", options->runs, "Runs of each candidate")
      ->check(CLI::Range(5, 100'000))
      ->capture_default_str();
  command->callback([&chosen, options] {
    chosen = [options](const Context& context) {
      return TuneCommand(context, *options);
    };
  });
}

}  // namespace kiln::cli
