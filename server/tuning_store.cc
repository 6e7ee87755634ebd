#include "server/tuning_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "cache/atomic_file.h"
#include "jit/compile/tuning.h"
#include "jit/plan/errors.h"
#include "server/cache_key.h"

namespace kiln {
namespace {

constexpr std::string_view kSuffix = ".json";
// A dozen measurements take 2 KiB.
constexpr int64_t kMaxFileBytes = int64_t{1} << 20;
constexpr int kMaxMeasured = 64;

// The key that a file is named after; empty: it is not a tuning's.
std::string KeyOfFileName(const std::string& name) {
  if (name.size() <= kSuffix.size()) return "";
  const std::string key = name.substr(0, name.size() - kSuffix.size());
  return name.substr(key.size()) == kSuffix && IsKey(key) ? key : "";
}

absl::Status Unreadable(const std::string& path, const std::string& why) {
  return absl::DataLossError(fmt::format("{}: {}", path, why));
}

absl::StatusOr<std::string> ReadSmallFile(FileOps* ops,
                                          const std::string& path) {
  const FileHandle file = OpenFile(ops, path, O_RDONLY | O_NOFOLLOW);
  struct stat status = {};
  if (!file.valid() || ops->Fstat(file.get(), &status) < 0) {
    return Unreadable(path, "cannot be opened");
  }
  if (!S_ISREG(status.st_mode) || status.st_size > kMaxFileBytes) {
    return Unreadable(path, "is no small file");
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  const ssize_t read = RetryInterrupted(
      [&] { return ops->Pread(file.get(), bytes.data(), bytes.size(), 0); });
  if (read != status.st_size) return Unreadable(path, "cannot be read");
  return bytes;
}

absl::StatusOr<v1::Tuning> ReadTuning(FileOps* ops, const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSmallFile(ops, path);
  if (!text.ok()) return text.status();
  v1::Tuning tuning;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(*text, &tuning);
  if (!parsed.ok()) return Unreadable(path, "is not a tuning in JSON");
  const absl::Status checked = CheckTuning(tuning);
  if (!checked.ok()) return Unreadable(path, std::string(checked.message()));
  return tuning;
}

}  // namespace

absl::Status CheckTuning(const v1::Tuning& tuning) {
  if (tuning.device().empty()) {
    return InvalidField("tuning.device",
                        "A tuning names what it was measured "
                        "on.",
                        "", "a device's name");
  }
  if (tuning.measured().empty() || tuning.measured_size() > kMaxMeasured) {
    return InvalidField("tuning.measured", "A tuning has measurements.",
                        fmt::format("{} of them", tuning.measured_size()),
                        fmt::format("1 to {}", kMaxMeasured));
  }
  bool has_winner = false;
  for (const v1::TuningMeasurement& measured : tuning.measured()) {
    const absl::StatusOr<Tuning> known = ParseTuning(measured.variant());
    if (!known.ok()) return known.status();
    has_winner |=
        measured.variant() == tuning.variant() && measured.error().empty();
  }
  if (has_winner) return absl::OkStatus();
  return InvalidField("tuning.variant", "The winner was not measured.",
                      tuning.variant(), "a variant of tuning.measured");
}

TuningStore::TuningStore(std::string folder, std::shared_ptr<FileOps> ops)
    : folder_(std::move(folder)),
      ops_(ops ? std::move(ops) : std::make_shared<FileOps>()) {
  std::vector<std::string> names;
  if (ops_->List(folder_, &names) < 0) return;
  for (const std::string& name : names) {
    const std::string key = KeyOfFileName(name);
    if (key.empty()) continue;
    absl::StatusOr<v1::Tuning> tuning =
        ReadTuning(ops_.get(), folder_ + "/" + name);
    if (!tuning.ok()) {
      spdlog::warn("Ignoring a tuning: {}",
                   std::string(tuning.status().message()));
      continue;
    }
    MutexLock lock(mutex_);
    tunings_[key] = std::make_shared<const v1::Tuning>(*std::move(tuning));
  }
}

TuningStore::Shared TuningStore::Find(const std::string& key) const {
  MutexLock lock(mutex_);
  const auto found = tunings_.find(key);
  return found == tunings_.end() ? nullptr : found->second;
}

absl::Status TuningStore::Write(const std::string& key,
                                const v1::Tuning& tuning) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(tuning, &text, options)
           .ok()) {
    return absl::InternalError("The tuning cannot be written as JSON");
  }
  RetryInterrupted([&] { return ops_->Mkdir(folder_, 0700); });
  const std::string path = fmt::format("{}/{}{}", folder_, key, kSuffix);
  const std::string temp = fmt::format("{}/.tmp-{}-{}", folder_, getpid(), key);
  const absl::Status written =
      WriteFileAtomically(ops_.get(), path, temp, text);
  if (!written.ok()) {
    return absl::UnavailableError(fmt::format("The tuning cannot be stored: {}",
                                              std::string(written.message())));
  }
  return absl::OkStatus();
}

absl::Status TuningStore::Put(const std::string& key,
                              const v1::Tuning& tuning) {
  MutexLock write_lock(write_mutex_);
  const absl::Status written = Write(key, tuning);
  if (!written.ok()) return written;
  MutexLock lock(mutex_);
  tunings_[key] = std::make_shared<const v1::Tuning>(tuning);
  return absl::OkStatus();
}

}  // namespace kiln
