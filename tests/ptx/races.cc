#include "tests/ptx/races.h"

#include <algorithm>

namespace kiln::ptx {
namespace {

constexpr int64_t kWord = 4;

}  // namespace

// Clocks go on from where those of the last block stood, all of which is known,
// so that nothing need be cleared.
void SharedRaces::Start(int warps, int64_t shared_bytes) {
  for (const uint32_t time : times_) latest_ = std::max(latest_, time);
  if (warps != warps_) reads_.clear();
  warps_ = warps;
  columns_ = warps + 1;
  times_.assign(static_cast<size_t>(columns_) * columns_, latest_);
  for (int i = 0; i < columns_; ++i) ++Time(i, i);
  fenced_.assign(static_cast<size_t>(columns_) * columns_, latest_);
  const auto words = static_cast<size_t>((shared_bytes + kWord - 1) / kWord);
  writers_.resize(words);
  for (Writer& writer : writers_) writer = {};
  reads_.resize(words * warps);
  released_.clear();
}

int SharedRaces::Read(int warp, int64_t offset, int64_t size_bytes) {
  for (int64_t word = offset / kWord; word < (offset + size_bytes) / kWord;
       ++word) {
    const Writer& writer = writers_[word];
    if (writer.warp != warp && writer.time > Time(warp, writer.warp)) {
      return writer.warp;
    }
    reads_[word * warps_ + warp] = Time(warp, warp);
  }
  return -1;
}

int SharedRaces::CheckWrite(int warp, int64_t word) {
  const Writer& writer = writers_[word];
  if (writer.warp != warp && writer.time > Time(warp, writer.warp)) {
    return writer.warp;
  }
  const uint32_t* const reads = &reads_[word * warps_];
  for (int reader = 0; reader < warps_; ++reader) {
    if (reader != warp && reads[reader] > Time(warp, reader)) return reader;
  }
  return -1;
}

int SharedRaces::Write(int warp, int64_t offset, int64_t size_bytes) {
  for (int64_t word = offset / kWord; word < (offset + size_bytes) / kWord;
       ++word) {
    const int other = CheckWrite(warp, word);
    if (other >= 0) return other;
    writers_[word] = {Time(warp, warp), warp};
  }
  return -1;
}

int SharedRaces::ReadByProduct(int warp, int64_t offset, int64_t size_bytes) {
  for (int64_t word = offset / kWord; word < (offset + size_bytes) / kWord;
       ++word) {
    const Writer& writer = writers_[word];
    const uint32_t fenced =
        std::max(Fenced(writer.warp, writer.warp), Fenced(warp, writer.warp));
    if (writer.warp != copier() && writer.time > fenced) return writer.warp;
  }
  return Read(warp, offset, size_bytes);
}

int SharedRaces::BeginCopy(int warp, int64_t offset, int64_t size_bytes,
                           uint32_t* time) {
  *time = Time(copier(), copier())++;
  for (int64_t word = offset / kWord; word < (offset + size_bytes) / kWord;
       ++word) {
    const int other = CheckWrite(warp, word);
    if (other >= 0) return other;
    writers_[word] = {*time, copier()};
  }
  return -1;
}

void SharedRaces::Fence(int warp) {
  for (int of = 0; of < columns_; ++of) Fenced(warp, of) = Time(warp, of);
  ++Time(warp, warp);
}

void SharedRaces::Join(const std::vector<uint32_t>& times, int warp) {
  for (int i = 0; i < columns_; ++i) {
    Time(warp, i) = std::max(Time(warp, i), times[i]);
  }
}

void SharedRaces::Meet(const std::vector<int>& warps) {
  std::vector<uint32_t> all(columns_);
  for (const int warp : warps) {
    for (int i = 0; i < columns_; ++i) all[i] = std::max(all[i], Time(warp, i));
  }
  for (const int warp : warps) {
    Join(all, warp);
    ++Time(warp, warp);
  }
}

void SharedRaces::Release(int warp, int64_t offset) {
  std::vector<uint32_t>& released = released_[offset];
  released.resize(columns_);
  for (int i = 0; i < columns_; ++i) {
    released[i] = std::max(released[i], Time(warp, i));
  }
  ++Time(warp, warp);
}

void SharedRaces::Acquire(int warp, int64_t offset) {
  const auto found = released_.find(offset);
  if (found != released_.end()) Join(found->second, warp);
}

void SharedRaces::EndCopy(int64_t offset, uint32_t time) {
  std::vector<uint32_t>& released = released_[offset];
  released.resize(columns_);
  released[copier()] = std::max(released[copier()], time);
}

}  // namespace kiln::ptx
