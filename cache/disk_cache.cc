#include "cache/disk_cache.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "cache/atomic_file.h"
#include "cache/cache_directory.h"
#include "cache/digest.h"
#include "cache/entry_file.h"
#include "cache/errors.h"
#include "cache/file_ops.h"
#include "cache/lru_index.h"
#include "cache/mutex.h"

namespace kiln {
namespace {

// A live writer renames its temporary file within milliseconds. The hour only
// guards against a second writer where locks do not work (NFS).
constexpr int64_t kTempAgeMs = 3600 * 1000;
constexpr int64_t kWarnEveryMs = 60 * 1000;

int64_t SystemNowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Eviction goes to 90% of the limit, so that it is rare.
int64_t LowWater(int64_t limit_bytes) { return limit_bytes - limit_bytes / 10; }

int64_t FileSize(const CacheEntry& entry) {
  return static_cast<int64_t>(kEntryOverheadBytes + entry.key_text.size() +
                              entry.payload.size());
}

std::string RandomSuffix() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskCache>> DiskCache::Open(Options options) {
  if (options.file_ops == nullptr) {
    options.file_ops = std::make_shared<FileOps>();
  }
  if (options.now_unix_ms == nullptr) options.now_unix_ms = SystemNowMs;
  auto directory =
      CacheDirectory::Open(options.file_ops.get(), options.directory);
  if (!directory.ok()) return directory.status();
  return std::unique_ptr<DiskCache>(
      new DiskCache(std::move(options), *std::move(directory)));
}

DiskCache::~DiskCache() = default;

DiskCache::DiskCache(Options options, CacheDirectory directory)
    : options_(std::move(options)),
      ops_(options_.file_ops.get()),
      temp_suffix_(RandomSuffix()),
      directory_(std::move(directory)) {
  MutexLock lock(write_mutex_);
  if (directory_.is_writer()) {
    PrepareToWrite();
    return;
  }
  const absl::Status status = BecomeWriter();
  if (status.ok()) return;
  WarnNowAndThen(status);
  Reindex();
}

absl::Status DiskCache::BecomeWriter() {
  if (directory_.is_writer()) return absl::OkStatus();
  absl::Status status = directory_.TryBecomeWriter();
  if (status.ok()) PrepareToWrite();
  return status;
}

void DiskCache::PrepareToWrite() {
  directory_.RemoveTempsOlderThan(options_.now_unix_ms() - kTempAgeMs);
  {
    MutexLock lock(mutex_);
    index_.Rebuild({});  // the writer before knew more of their use
  }
  Reindex();
  {
    MutexLock lock(mutex_);
    counters_.writable = true;
  }
  if (size_bytes() > options_.limit_bytes) {
    EvictDownTo(LowWater(options_.limit_bytes));
  }
}

void DiskCache::Refresh() {
  MutexLock writing(write_mutex_);
  Reindex();
}

void DiskCache::Reindex() {
  const int64_t now = options_.now_unix_ms();
  CacheDirectory::Listing listing = directory_.FindEntries();
  std::vector<LruIndex::Entry> entries;
  for (CacheDirectory::FoundEntry& found : listing.entries) {
    // A clock that was wrong must not keep an entry for ever.
    const int64_t used = std::min(found.modified_unix_ms, now);
    entries.push_back({std::move(found.key), found.size_bytes, used, used});
  }
  MutexLock lock(mutex_);
  // What may still be there takes room.
  if (!listing.is_whole && index_.entries() > 0) return;
  index_.Rebuild(std::move(entries));
}

// Where the file of an entry that was there is missing, others may be, too.
void DiskCache::NoticeMissing(const std::string& key) {
  if (!IsIndexed(key)) return;
  MutexLock writing(write_mutex_);
  // This cache itself may have evicted it meanwhile, or stored it again.
  if (IsIndexed(key) && !HasFile(key)) Reindex();
}

bool DiskCache::IsIndexed(const std::string& key) const {
  MutexLock lock(mutex_);
  return index_.Find(key) != nullptr;
}

std::optional<DiskCache::Record> DiskCache::Get(const std::string& key) {
  absl::StatusOr<CacheEntry> entry = Read(key);
  if (!entry.ok()) {
    MutexLock lock(mutex_);
    ++counters_.misses;
    return std::nullopt;
  }
  CountHit(key, FileSize(*entry));
  return Record{std::move(entry->key_text), std::move(entry->payload)};
}

absl::StatusOr<CacheEntry> DiskCache::Read(const std::string& key) {
  if (!IsCacheKey(key)) return EntryMissingError();
  absl::StatusOr<CacheEntry> entry =
      ReadEntryFile(ops_, directory_.EntryPath(key), key);
  if (absl::IsDataLoss(entry.status())) entry = ReadAgain(key);
  if (absl::IsNotFound(entry.status())) NoticeMissing(key);
  return entry;
}

// Another thread may have set the damaged file aside and stored a good one
// since it was read: only what is read under the lock is judged.
absl::StatusOr<CacheEntry> DiskCache::ReadAgain(const std::string& key) {
  MutexLock lock(write_mutex_);
  absl::StatusOr<CacheEntry> entry =
      ReadEntryFile(ops_, directory_.EntryPath(key), key);
  if (absl::IsDataLoss(entry.status())) SetAside(key, entry.status());
  return entry;
}

void DiskCache::SetAside(const std::string& key, const absl::Status& damage) {
  spdlog::warn("Cache entry {} is damaged: {}", key,
               std::string(damage.message()));
  absl::Status status;
  if (directory_.is_writer()) status = directory_.Quarantine(key);
  if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
  MutexLock lock(mutex_);
  ++counters_.damaged;
  index_.Erase(key);
}

void DiskCache::CountHit(const std::string& key, int64_t size_bytes) {
  const int64_t now = options_.now_unix_ms();
  bool known = false;
  bool save = false;
  {
    MutexLock lock(mutex_);
    ++counters_.hits;
    known = index_.Find(key) != nullptr;
    save = index_.Touch(key, now) && counters_.writable;
  }
  if (!known) Adopt(key, size_bytes);
  if (save) ops_->SetModified(directory_.EntryPath(key), now);
}

// Indexes an entry that another process stored or that was copied in.
void DiskCache::Adopt(const std::string& key, int64_t size_bytes) {
  MutexLock writing(write_mutex_);
  if (!HasFile(key)) return;  // evicted since it was read
  const int64_t now = options_.now_unix_ms();
  MutexLock lock(mutex_);
  if (index_.Find(key) == nullptr) index_.Insert({key, size_bytes, now, 0});
}

bool DiskCache::Contains(const std::string& key) {
  if (HasFile(key)) return true;
  NoticeMissing(key);
  return false;
}

bool DiskCache::HasFile(const std::string& key) const {
  struct stat status = {};
  return IsCacheKey(key) &&
         ops_->Lstat(directory_.EntryPath(key), &status) == 0 &&
         S_ISREG(status.st_mode);
}

void DiskCache::Put(const std::string& key, std::string_view key_text,
                    std::string_view payload) {
  if (!IsCacheKey(key)) return;
  // Serialised and hashed before the lock is taken.
  const std::string bytes =
      SerializeEntry(key, key_text, payload, options_.writer);
  MutexLock writing(write_mutex_);
  absl::Status status = BecomeWriter();
  if (!status.ok()) return WarnNowAndThen(status);
  if (IsStored(key)) return;
  status = Store(key, bytes);
  if (!status.ok()) return ReportFailedStore(status);

  const int64_t now = options_.now_unix_ms();
  MutexLock lock(mutex_);
  index_.Insert({key, static_cast<int64_t>(bytes.size()), now, now});
  ++counters_.stores;
  counters_.degraded = false;
}

// The index knows nothing of files that someone removed.
bool DiskCache::IsStored(const std::string& key) const {
  return IsIndexed(key) && HasFile(key);
}

absl::Status DiskCache::Store(const std::string& key,
                              const std::string& bytes) {
  absl::Status status = MakeRoom(static_cast<int64_t>(bytes.size()));
  if (!status.ok()) return status;
  const std::string temp =
      directory_.TempPath(key, fmt::format("{}-{}", temp_suffix_, ++temps_));
  const std::string path = directory_.EntryPath(key);
  status = WriteFileAtomically(ops_, path, temp, bytes);
  if (!absl::IsNotFound(status)) return status;

  status = directory_.MakeEntryDirectory(key);
  if (!status.ok()) return status;
  return WriteFileAtomically(ops_, path, temp, bytes);
}

absl::Status DiskCache::MakeRoom(int64_t size_bytes) {
  const int64_t limit = std::min<int64_t>(options_.limit_bytes, kMaxEntryBytes);
  if (size_bytes > limit) return NoRoomError(size_bytes, limit);
  const auto has_room = [&] {
    return this->size_bytes() + size_bytes <= options_.limit_bytes;
  };
  if (has_room()) return absl::OkStatus();
  Reindex();
  if (has_room()) return absl::OkStatus();
  EvictDownTo(
      std::max<int64_t>(LowWater(options_.limit_bytes) - size_bytes, 0));
  return has_room() ? absl::OkStatus()
                    : NoRoomError(size_bytes, options_.limit_bytes);
}

DiskCache::Removed DiskCache::EvictDownTo(int64_t target_bytes) {
  std::vector<std::string> victims;
  {
    MutexLock lock(mutex_);
    victims = index_.Victims(target_bytes);
  }
  Removed removed;
  for (const std::string& key : victims) Remove(key, &removed);
  MutexLock lock(mutex_);
  counters_.evictions += removed.entries;
  return removed;
}

// An entry that cannot be removed stays in the index: its bytes still count.
bool DiskCache::Remove(const std::string& key, Removed* removed) {
  const std::string path = directory_.EntryPath(key);
  const int result = RetryInterrupted([&] { return ops_->Unlink(path); });
  if (result < 0 && result != -ENOENT) return false;
  MutexLock lock(mutex_);
  const LruIndex::Entry* entry = index_.Find(key);
  if (entry == nullptr) return false;
  ++removed->entries;
  removed->size_bytes += entry->size_bytes;
  index_.Erase(key);
  return true;
}

void DiskCache::ReportFailedStore(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    ++counters_.store_failures;
    counters_.degraded = true;
  }
  WarnNowAndThen(status);
}

void DiskCache::WarnNowAndThen(const absl::Status& status) {
  const int64_t now = options_.now_unix_ms();
  {
    MutexLock lock(mutex_);
    if (now < next_warning_ms_) return;
    next_warning_ms_ = now + kWarnEveryMs;
  }
  spdlog::warn("The cache cannot store entries: {}",
               std::string(status.message()));
}

std::vector<DiskCache::EntryInfo> DiskCache::List() {
  Refresh();
  std::vector<LruIndex::Entry> entries;
  {
    MutexLock lock(mutex_);
    entries = index_.MostRecentFirst();
  }
  std::vector<EntryInfo> infos;
  for (LruIndex::Entry& entry : entries) {
    const auto key_text =
        ReadKeyText(ops_, directory_.EntryPath(entry.key), entry.key);
    infos.push_back({std::move(entry.key), key_text.ok() ? *key_text : "",
                     entry.size_bytes, entry.last_used_ms});
  }
  return infos;
}

std::vector<DiskCache::DamagedFile> DiskCache::Verify(
    const std::function<bool(int64_t checked, int64_t total)>& progress) {
  const std::vector<CacheDirectory::FoundEntry> found =
      directory_.FindEntries().entries;
  std::vector<DamagedFile> damaged;
  int64_t checked = 0;
  for (const CacheDirectory::FoundEntry& entry : found) {
    const absl::Status status = Read(entry.key).status();
    if (absl::IsDataLoss(status)) {
      damaged.push_back(
          {directory_.EntryPath(entry.key), std::string(status.message())});
    }
    ++checked;
    if (progress && !progress(checked, static_cast<int64_t>(found.size()))) {
      break;
    }
  }
  return damaged;
}

absl::StatusOr<DiskCache::Removed> DiskCache::Gc(int64_t limit_bytes) {
  MutexLock writing(write_mutex_);
  const absl::Status status = BecomeWriter();
  if (!status.ok()) return status;
  Reindex();
  return EvictDownTo(limit_bytes);
}

absl::StatusOr<DiskCache::Removed> DiskCache::Purge(
    const std::vector<std::string>& keys) {
  MutexLock writing(write_mutex_);
  const absl::Status status = BecomeWriter();
  if (!status.ok()) return status;
  Removed removed;
  std::vector<std::string> targets = keys;
  if (targets.empty()) {
    Reindex();
    MutexLock lock(mutex_);
    targets = index_.Victims(-1);
  }
  for (const std::string& key : targets) {
    if (IsCacheKey(key)) Remove(key, &removed);
  }
  return removed;
}

DiskCache::Counters DiskCache::counters() const {
  MutexLock lock(mutex_);
  Counters counters = counters_;
  counters.entries = index_.entries();
  counters.size_bytes = index_.size_bytes();
  counters.limit_bytes = options_.limit_bytes;
  return counters;
}

int64_t DiskCache::size_bytes() const {
  MutexLock lock(mutex_);
  return index_.size_bytes();
}

}  // namespace kiln
