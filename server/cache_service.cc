#include "server/cache_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jit/plan/errors.h"
#include "server/cache_key.h"
#include "server/call.h"
#include "server/errors.h"
#include "server/plan_summary.h"
#include "server/queued_writer.h"

namespace kiln {
namespace {

void Fill(const DiskCache::EntryInfo& info, v1::CacheEntry* entry) {
  entry->set_key(info.key);
  entry->set_size_bytes(info.size_bytes);
  entry->set_last_used_unix_ms(info.last_used_unix_ms);
  entry->set_target(std::string(KeyTextField(info.key_text, "target")));
  entry->set_summary(SummarizeKeyText(info.key_text));
}

void FillStats(const Front& front, v1::CacheStatsResponse* response) {
  front.disk->Refresh();
  const DiskCache::Counters disk = front.disk->counters();
  const ArtifactProvider::Counters artifacts = front.artifacts->counters();
  response->set_directory(front.disk->directory().string());
  response->set_entries(disk.entries);
  response->set_size_bytes(disk.size_bytes);
  response->set_limit_bytes(disk.limit_bytes);
  response->set_memory_entries(artifacts.memory.entries);
  response->set_memory_bytes(artifacts.memory.size_bytes);
  response->set_memory_hits(artifacts.memory.hits);
  response->set_disk_hits(artifacts.disk_hits);
  response->set_misses(artifacts.misses);
  response->set_stores(disk.stores);
  response->set_store_failures(disk.store_failures);
  response->set_evictions(disk.evictions);
  response->set_damaged(disk.damaged);
  response->set_degraded(disk.degraded);
  response->set_compiles(artifacts.compiles);
  response->set_hits(disk.hits);
  response->set_writable(disk.writable);
}

absl::Status ShowEntry(Front& front, const std::string& key,
                       v1::CacheShowResponse* response) {
  const absl::StatusOr<DiskCache::EntryInfo> info =
      FindEntry(key, front.disk->List());
  if (!info.ok()) return info.status();
  std::optional<DiskCache::Record> record = front.disk->Get(info->key);
  if (!record) return UnknownKey(info->key);
  Fill(*info, response->mutable_entry());
  response->set_key_text(std::move(record->key_text));
  response->set_artifact(std::move(record->payload));
  return absl::OkStatus();
}

using VerifyWriter = QueuedWriter<v1::CacheVerifyEvent>;

void PushProgress(VerifyWriter& writer, int64_t checked, int64_t total,
                  int64_t damaged, bool done) {
  v1::CacheVerifyEvent event;
  v1::CacheVerifyEvent::Progress* progress = event.mutable_progress();
  progress->set_checked(checked);
  progress->set_total(total);
  progress->set_damaged(damaged);
  progress->set_done(done);
  writer.Push(std::move(event));
}

void VerifyAll(DiskCache& disk, VerifyWriter& writer) {
  int64_t checked = 0;
  int64_t total = 0;
  const std::vector<DiskCache::DamagedFile> damaged =
      disk.Verify([&](int64_t now_checked, int64_t now_total) {
        checked = now_checked;
        total = now_total;
        // A hundred lines at most: the client draws a bar.
        if (checked % std::max<int64_t>(1, total / 100) == 0) {
          PushProgress(writer, checked, total, 0, false);
        }
        return !writer.closed();
      });
  for (const DiskCache::DamagedFile& file : damaged) {
    v1::CacheVerifyEvent event;
    event.mutable_damaged()->set_file(file.file);
    event.mutable_damaged()->set_reason(file.reason);
    writer.Push(std::move(event));
  }
  PushProgress(writer, checked, total, damaged.size(), true);
  writer.Close(absl::OkStatus());
}

// Full keys for keys and prefixes.
absl::StatusOr<std::vector<std::string>> ResolveKeys(
    DiskCache& disk, const v1::CachePurgeRequest& request) {
  const std::vector<DiskCache::EntryInfo> entries = disk.List();
  std::vector<std::string> keys;
  for (const std::string& text : request.keys()) {
    const absl::StatusOr<DiskCache::EntryInfo> info = FindEntry(text, entries);
    if (!info.ok()) return info.status();
    keys.push_back(info->key);
  }
  return keys;
}

}  // namespace

CacheService::CacheService(Front& front, const Peer& peer)
    : front_(front), peer_(peer) {}

grpc::ServerUnaryReactor* CacheService::Stats(
    grpc::CallbackServerContext* context, const v1::CacheStatsRequest*,
    v1::CacheStatsResponse* response) {
  return AnswerNow(front_.activity, context, peer_, "Stats", [&](Call&) {
    FillStats(front_, response);
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::CacheEntry>* CacheService::List(
    grpc::CallbackServerContext* context, const v1::CacheListRequest* request) {
  auto writer = QueuedWriter<v1::CacheEntry>::Start(front_.activity, context,
                                                    peer_, "List");
  const std::vector<DiskCache::EntryInfo> entries = front_.disk->List();
  size_t count = entries.size();
  if (request->limit() > 0) {
    count = std::min<size_t>(count, request->limit());
  }
  for (size_t i = 0; i < count; ++i) {
    v1::CacheEntry entry;
    Fill(entries[i], &entry);
    writer->Push(std::move(entry));
  }
  writer->Close(absl::OkStatus());
  return writer.get();
}

grpc::ServerUnaryReactor* CacheService::Show(
    grpc::CallbackServerContext* context, const v1::CacheShowRequest* request,
    v1::CacheShowResponse* response) {
  return AnswerNow(front_.activity, context, peer_, "Show", [&](Call&) {
    return ShowEntry(front_, request->key(), response);
  });
}

grpc::ServerWriteReactor<v1::CacheVerifyEvent>* CacheService::Verify(
    grpc::CallbackServerContext* context, const v1::CacheVerifyRequest*) {
  std::shared_ptr<VerifyWriter> writer =
      VerifyWriter::Start(front_.activity, context, peer_, "Verify");
  front_.maintenance->Post(
      [disk = front_.disk.get(), writer] { VerifyAll(*disk, *writer); });
  return writer.get();
}

grpc::ServerUnaryReactor* CacheService::Gc(grpc::CallbackServerContext* context,
                                           const v1::CacheGcRequest* request,
                                           v1::CacheGcResponse* response) {
  return AnswerNow(front_.activity, context, peer_, "Gc", [&](Call&) {
    const int64_t limit = request->has_limit_bytes()
                              ? request->limit_bytes()
                              : front_.options.cache_limit_bytes;
    if (limit < 0) {
      return InvalidField("limit_bytes", "is negative", std::to_string(limit),
                          "at least 0");
    }
    const absl::StatusOr<DiskCache::Removed> removed = front_.disk->Gc(limit);
    if (!removed.ok()) return removed.status();
    response->set_evicted(removed->entries);
    response->set_freed_bytes(removed->size_bytes);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* CacheService::Purge(
    grpc::CallbackServerContext* context, const v1::CachePurgeRequest* request,
    v1::CachePurgeResponse* response) {
  return AnswerNow(front_.activity, context, peer_, "Purge", [&](Call&) {
    const absl::StatusOr<std::vector<std::string>> keys =
        ResolveKeys(*front_.disk, *request);
    if (!keys.ok()) return keys.status();
    // Before, so that what memory has is not stored again behind the removal;
    // and after, for what has been read from disk meanwhile.
    front_.artifacts->Forget(*keys);
    const absl::StatusOr<DiskCache::Removed> removed =
        front_.disk->Purge(*keys);
    front_.artifacts->Forget(*keys);
    if (!removed.ok()) return removed.status();
    response->set_removed(removed->entries);
    return absl::OkStatus();
  });
}

}  // namespace kiln
