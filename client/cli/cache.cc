#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

#include "client/cli/artifact_files.h"
#include "client/cli/commands.h"
#include "client/cli/validators.h"
#include "client/connection.h"

namespace kiln::cli {
namespace {

constexpr char kCacheExamples[] = R"(
Examples:
  kiln cache stats
  kiln cache ls --limit 20
  kiln cache show 3f9a12
  kiln cache verify                 exit status 8 if damage is found
  kiln cache gc --limit 2GiB
  kiln cache purge 3f9a12           one entry
  kiln cache purge --yes            everything)";

using client::Connection;

std::string TimeText(int64_t unix_ms) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}",
                     fmt::localtime(static_cast<std::time_t>(unix_ms / 1000)));
}

ExitCode Fail(const Terminal& terminal, const absl::Status& status) {
  terminal.Error(status);
  return ExitCodeOf(status);
}

Json ToJson(const v1::CacheStatsResponse& stats) {
  Json json = {{"directory", stats.directory()},
               {"entries", stats.entries()},
               {"size_bytes", stats.size_bytes()},
               {"limit_bytes", stats.limit_bytes()},
               {"memory_entries", stats.memory_entries()},
               {"memory_bytes", stats.memory_bytes()},
               {"memory_hits", stats.memory_hits()},
               {"hits", stats.hits()},
               {"disk_hits", stats.disk_hits()},
               {"misses", stats.misses()},
               {"compiles", stats.compiles()},
               {"stores", stats.stores()},
               {"store_failures", stats.store_failures()},
               {"evictions", stats.evictions()},
               {"damaged", stats.damaged()},
               {"degraded", stats.degraded()}};
  if (stats.has_writable()) json["writable"] = stats.writable();
  return json;
}

Json ToJson(const v1::CacheEntry& entry) {
  return {{"key", entry.key()},
          {"target", entry.target()},
          {"size_bytes", entry.size_bytes()},
          {"last_used_unix_ms", entry.last_used_unix_ms()},
          {"summary", entry.summary()}};
}

ExitCode Stats(const Terminal& terminal, const Connection& connection) {
  const auto stats = connection.Call(
      connection.cache(), &v1::Cache::Stub::Stats, v1::CacheStatsRequest());
  if (!stats.ok()) return Fail(terminal, stats.status());
  const Json json = ToJson(*stats);
  std::string text;
  for (const auto& item : json.items()) {
    text +=
        fmt::format("{:<16} {}\n", item.key(),
                    item.value().is_string() ? item.value().get<std::string>()
                                             : item.value().dump());
  }
  terminal.Print(text);
  terminal.PrintJson("kiln.cache.stats/1", json);
  return kOk;
}

ExitCode List(const Terminal& terminal, const Connection& connection,
              int64_t limit) {
  v1::CacheListRequest request;
  request.set_limit(limit);
  grpc::ClientContext context;
  connection.Prepare(context);
  const auto stream = connection.cache().List(&context, request);
  Json entries = Json::array();
  v1::CacheEntry entry;
  while (stream->Read(&entry)) {
    terminal.Print(
        fmt::format("{}  {:<12} {:>10}  {}  {}\n", entry.key().substr(0, 12),
                    entry.target(), entry.size_bytes(),
                    TimeText(entry.last_used_unix_ms()), entry.summary()));
    entries.push_back(ToJson(entry));
  }
  const absl::Status end =
      connection.Finish(stream->Finish(), context, "CacheListRequest");
  if (!end.ok()) return Fail(terminal, end);
  terminal.PrintJson("kiln.cache.ls/1", {{"entries", entries}});
  return kOk;
}

ExitCode Show(const Terminal& terminal, const Connection& connection,
              const std::string& key) {
  v1::CacheShowRequest request;
  request.set_key(key);
  const auto shown =
      connection.Call(connection.cache(), &v1::Cache::Stub::Show, request);
  if (!shown.ok()) return Fail(terminal, shown.status());
  v1::Artifact artifact;
  if (!artifact.ParseFromString(shown->artifact())) {
    return Fail(terminal, absl::DataLossError("The entry is no artifact"));
  }
  Json json = ToJson(shown->entry());
  json["kernels"] = KernelsJson(artifact);
  json["key_text"] = shown->key_text();
  terminal.Print(fmt::format(
      "{}  {}  {} bytes, last used {}\n\n{}\n", shown->entry().key(),
      shown->entry().target(), shown->entry().size_bytes(),
      TimeText(shown->entry().last_used_unix_ms()), shown->key_text()));
  for (const Json& kernel : json["kernels"]) {
    terminal.Print(fmt::format("kernel {}: {} registers\n",
                               kernel["symbol"].get<std::string>(),
                               kernel["registers"].get<int>()));
  }
  terminal.PrintJson("kiln.cache.show/1", json);
  return kOk;
}

ExitCode Verify(const Terminal& terminal, const Connection& connection) {
  grpc::ClientContext context;
  connection.Prepare(context);
  const auto stream =
      connection.cache().Verify(&context, v1::CacheVerifyRequest());
  Json damaged = Json::array();
  v1::CacheVerifyEvent event;
  v1::CacheVerifyEvent::Progress last;
  while (stream->Read(&event)) {
    if (event.has_progress()) last = event.progress();
    if (!event.has_damaged()) continue;
    terminal.Print(fmt::format("damaged  {}: {}\n", event.damaged().file(),
                               event.damaged().reason()));
    damaged.push_back({{"file", event.damaged().file()},
                       {"reason", event.damaged().reason()}});
  }
  const absl::Status end =
      connection.Finish(stream->Finish(), context, "CacheVerifyRequest");
  if (!end.ok()) return Fail(terminal, end);
  terminal.Print(fmt::format("{} entries checked, {} damaged\n", last.checked(),
                             damaged.size()));
  terminal.PrintJson("kiln.cache.verify/1",
                     {{"checked", last.checked()}, {"damaged", damaged}});
  if (damaged.empty()) return kOk;
  terminal.Note(
      "Damaged entries are set aside; they compile again when asked "
      "for.");
  return kCorruption;
}

ExitCode Gc(const Terminal& terminal, const Connection& connection,
            std::optional<int64_t> limit_bytes) {
  v1::CacheGcRequest request;
  if (limit_bytes) request.set_limit_bytes(*limit_bytes);
  const auto done =
      connection.Call(connection.cache(), &v1::Cache::Stub::Gc, request);
  if (!done.ok()) return Fail(terminal, done.status());
  terminal.Print(fmt::format("{} entries evicted, {} bytes freed\n",
                             done->evicted(), done->freed_bytes()));
  terminal.PrintJson("kiln.cache.gc/1", {{"evicted", done->evicted()},
                                         {"freed_bytes", done->freed_bytes()}});
  return kOk;
}

bool Confirmed(const Terminal& terminal) {
  terminal.Note("Remove every entry? [y/N]");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

ExitCode Purge(const Terminal& terminal, const Connection& connection,
               const std::vector<std::string>& keys, bool yes) {
  if (keys.empty() && !yes) {
    if (isatty(STDIN_FILENO) != 1) {
      terminal.Error(absl::InvalidArgumentError(
          "Purging everything without a terminal needs --yes"));
      return kUsage;
    }
    if (!Confirmed(terminal)) return kFailure;
  }
  v1::CachePurgeRequest request;
  for (const std::string& key : keys) request.add_keys(key);
  const auto done =
      connection.Call(connection.cache(), &v1::Cache::Stub::Purge, request);
  if (!done.ok()) return Fail(terminal, done.status());
  terminal.Print(fmt::format("{} entries removed\n", done->removed()));
  terminal.PrintJson("kiln.cache.purge/1", {{"removed", done->removed()}});
  return kOk;
}

using Action = std::function<ExitCode(const Terminal&, const Connection&)>;

CLI::App* AddAction(CLI::App& cache, Command& chosen, const char* name,
                    const char* description, Action action) {
  CLI::App* command = cache.add_subcommand(name, description);
  command->fallthrough();
  command->callback([&chosen, action = std::move(action)] {
    chosen = [action](const Context& context) {
      const Terminal terminal(context.terminal);
      const auto connection = Connection::Open(context.connect);
      if (!connection.ok()) return Fail(terminal, connection.status());
      return action(terminal, **connection);
    };
  });
  return command;
}

struct CacheOptions {
  int64_t list_limit = 0;
  std::string key;
  std::optional<int64_t> gc_limit_bytes;
  std::vector<std::string> purge_keys;
  bool yes = false;
};

}  // namespace

void AddCacheCommand(CLI::App& app, Command& chosen) {
  CLI::App* cache = app.add_subcommand("cache", "Look after the kernel cache");
  cache->footer(kCacheExamples);
  cache->fallthrough();
  cache->require_subcommand(1);
  const auto options = std::make_shared<CacheOptions>();

  AddAction(*cache, chosen, "stats", "Sizes and counters", Stats);
  AddAction(*cache, chosen, "ls", "Entries, most recently used first",
            [options](const Terminal& terminal, const Connection& connection) {
              return List(terminal, connection, options->list_limit);
            })
      ->add_option("--limit", options->list_limit,
                   "At most so many (default: all)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("COUNT");
  AddAction(*cache, chosen, "show", "One entry: key text and kernels",
            [options](const Terminal& terminal, const Connection& connection) {
              return Show(terminal, connection, options->key);
            })
      ->add_option("KEY", options->key, "Key, or at least 6 digits of it")
      ->required()
      ->check(PlainText());
  AddAction(*cache, chosen, "verify", "Read and check every entry", Verify);
  AddAction(*cache, chosen, "gc", "Evict entries until a limit holds",
            [options](const Terminal& terminal, const Connection& connection) {
              return Gc(terminal, connection, options->gc_limit_bytes);
            })
      ->add_option("--limit", options->gc_limit_bytes,
                   "Bytes, or 2GiB (default: the daemon's limit)")
      ->transform(SizeInBytes());
  CLI::App* purge = AddAction(
      *cache, chosen, "purge", "Remove entries",
      [options](const Terminal& terminal, const Connection& connection) {
        return Purge(terminal, connection, options->purge_keys, options->yes);
      });
  purge->add_option("KEYS", options->purge_keys, "Keys (default: all)")
      ->check(PlainText());
  purge->add_flag("--yes", options->yes, "Do not ask");
}

}  // namespace kiln::cli
