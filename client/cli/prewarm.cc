#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

#include "client/cli/commands.h"
#include "client/cli/journal.h"
#include "client/cli/manifest.h"
#include "client/cli/plan_file.h"
#include "client/cli/prewarm_progress.h"
#include "client/cli/validators.h"
#include "client/client.h"

namespace kiln::cli {
namespace {

constexpr char kPrewarmExamples[] = R"(
Examples:
  kiln prewarm fleet.jsonl --target h100-sxm,a100 --jobs 4
  kiln prewarm plans/*.kiln --target l40s
  kiln prewarm fleet.jsonl --resume
      Skips what fleet.jsonl.done lists and the cache still holds, and adds
      to it.

A manifest holds one JSON object on each line: {"plan": text or path,
"targets": [...], "grade": "fp32", "variant": "conv1"}, of which only "plan" is
needed; kilnd --record writes one. A plan that
fails is listed at the end and stops nothing; the exit status is then 7.
Cached kernels cost next to nothing, so running it again is always right.)";

struct PrewarmOptions {
  std::vector<std::string> paths;
  std::vector<std::string> targets;
  int jobs = 2;
  bool resume = false;
};

// Set by SIGINT, read between items.
std::atomic<bool> interrupted{false};

struct Failure {
  std::string name;
  std::string target;
  absl::Status status;
};

// Compiles items on several threads until none is left.
class Prewarm {
 public:
  Prewarm(const std::vector<WorkItem>& items, Client& client, Journal& journal,
          PrewarmProgress& progress)
      : items_(items),
        client_(client),
        journal_(journal),
        progress_(progress) {}

  std::vector<Failure> Run(int jobs);

 private:
  void Work();
  void Do(const WorkItem& item);
  void Fail(const WorkItem& item, const absl::Status& status);

  const std::vector<WorkItem>& items_;
  Client& client_;
  Journal& journal_;
  PrewarmProgress& progress_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> daemon_lost_{false};
  std::mutex mutex_;
  std::vector<Failure> failures_;  // guarded by mutex_
};

std::vector<Failure> Prewarm::Run(int jobs) {
  std::vector<std::thread> threads;
  threads.reserve(jobs);
  for (int i = 0; i < jobs; ++i) threads.emplace_back([this] { Work(); });
  for (std::thread& thread : threads) thread.join();
  return std::move(failures_);
}

void Prewarm::Work() {
  while (!interrupted && !daemon_lost_) {
    const size_t index = next_++;
    if (index >= items_.size()) return;
    Do(items_[index]);
  }
}

void Prewarm::Do(const WorkItem& item) {
  using Outcome = PrewarmProgress::Outcome;
  if (!item.plan.ok()) return Fail(item, item.plan.status());
  CompileOptions options;
  options.target = item.target;
  options.variant = item.variant;
  options.prewarm = true;
  const absl::StatusOr<CompiledPlan> compiled =
      client_.Compile(*item.plan, options);
  if (!compiled.ok()) return Fail(item, compiled.status());
  const bool is_listed = journal_.Contains(item.Id());
  if (!is_listed) journal_.Add(item.Id());
  if (compiled->source == ArtifactSource::kCompiled) {
    return progress_.Add(Outcome::kCompiled);
  }
  progress_.Add(is_listed ? Outcome::kSkipped : Outcome::kCached);
}

void Prewarm::Fail(const WorkItem& item, const absl::Status& status) {
  if (absl::IsUnavailable(status)) daemon_lost_ = true;
  progress_.Add(PrewarmProgress::Outcome::kFailed);
  const std::lock_guard<std::mutex> lock(mutex_);
  failures_.push_back({item.name, item.target, status});
}

// "fleet.jsonl:3 a100: what is wrong"; many a message names the plan itself.
std::string TextOf(const Failure& failure) {
  const std::string message(failure.status.message());
  if (message.rfind(failure.name + ": ", 0) == 0) return message;
  const std::string_view space = failure.target.empty() ? "" : " ";
  return fmt::format("{}{}{}: {}", failure.name, space, failure.target,
                     message);
}

void PrintResult(const Terminal& terminal, const PrewarmProgress& progress,
                 const std::vector<Failure>& failures) {
  const PrewarmCounts counts = progress.counts();
  Json failed = Json::array();
  for (const Failure& failure : failures) {
    terminal.Failed(TextOf(failure));
    failed.push_back({{"name", failure.name},
                      {"target", failure.target},
                      {"error", ErrorJson(failure.status)}});
  }
  terminal.Print(fmt::format(
      "{} of {} done in {:.1f} s: {} compiled, {} cached, {} skipped, {} "
      "failed\n",
      counts.done(), counts.total, progress.elapsed_s(), counts.compiled,
      counts.cached, counts.skipped, counts.failed));
  terminal.PrintJson("kiln.prewarm/1", {{"total", counts.total},
                                        {"compiled", counts.compiled},
                                        {"cached", counts.cached},
                                        {"skipped", counts.skipped},
                                        {"failed", counts.failed},
                                        {"failures", failed}});
}

ExitCode ExitCodeOfCounts(const PrewarmCounts& counts,
                          const std::vector<Failure>& failures) {
  if (interrupted) return kInterrupted;
  for (const Failure& failure : failures) {
    if (absl::IsUnavailable(failure.status)) return kUnreachable;
  }
  return counts.failed > 0 ? kPartly : kOk;
}

absl::StatusOr<std::unique_ptr<Journal>> OpenJournal(
    const PrewarmOptions& options) {
  if (!options.resume) return std::make_unique<Journal>();
  return Journal::Open(options.paths[0] + ".done");
}

ExitCode PrewarmCommand(const Context& context, const PrewarmOptions& options) {
  const Terminal terminal(context.terminal);
  const auto fail = [&terminal](const absl::Status& status) {
    terminal.Error(status);
    return ExitCodeOf(status);
  };
  const auto targets = ResolveTargets(options.targets, terminal);
  if (!targets.ok()) {
    terminal.Error(targets.status());
    return kUsage;
  }
  const auto items = LoadWork(options.paths, *targets);
  if (!items.ok()) return fail(items.status());
  if (items->empty()) terminal.Note("There is nothing to do: no plan is named");
  const auto journal = OpenJournal(options);
  if (!journal.ok()) return fail(journal.status());
  absl::StatusOr<Client> client = Client::Connect(context.connect);
  if (!client.ok()) return fail(client.status());

  std::signal(SIGINT, [](int) { interrupted = true; });
  PrewarmProgress progress(terminal, static_cast<int64_t>(items->size()));
  const std::vector<Failure> failures =
      Prewarm(*items, *client, **journal, progress).Run(options.jobs);
  progress.Finish();
  PrintResult(terminal, progress, failures);
  return ExitCodeOfCounts(progress.counts(), failures);
}

}  // namespace

void AddPrewarmCommand(CLI::App& app, Command& chosen) {
  CLI::App* command =
      app.add_subcommand("prewarm", "Fill the cache from manifests and plans");
  command->footer(kPrewarmExamples);
  command->fallthrough();
  const auto options = std::make_shared<PrewarmOptions>();
  command->add_option("PATHS", options->paths, "Manifests (.jsonl) and plans")
      ->required()
      ->check(NotEmpty());
  command
      ->add_option("--target", options->targets,
                   "Targets, separated by commas (default: the manifest's)")
      ->delimiter(',');
  command->add_option("--jobs", options->jobs, "Requests at the same time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_flag("--resume", options->resume,
                    "Go on where the last run with --resume stopped");
  command->callback([&chosen, options] {
    chosen = [options](const Context& context) {
      return PrewarmCommand(context, *options);
    };
  });
}

}  // namespace kiln::cli
