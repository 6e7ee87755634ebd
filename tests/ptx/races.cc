#include "tests/ptx/races.h"

#include <algorithm>
#include <cstring>

namespace kiln::ptx {
namespace {

constexpr int64_t kWord = 4;

}  // namespace

// Clocks go on from where those of the last block stood, all of which is known,
// so that nothing need be cleared.
void SharedRaces::Start(int warps, int64_t shared_bytes) {
  for (const uint32_t time : times_) latest_ = std::max(latest_, time);
  const auto words = static_cast<size_t>((shared_bytes + kWord - 1) / kWord);
  if (warps != warps_ || words * warps != num_reads_) {
    num_reads_ = words * warps;
    reads_.reset(
        static_cast<uint32_t*>(std::calloc(num_reads_, sizeof(uint32_t))));
  }
  warps_ = warps;
  columns_ = warps + 1;
  times_.assign(static_cast<size_t>(columns_) * columns_, latest_);
  for (int i = 0; i < columns_; ++i) ++Time(i, i);
  fenced_.assign(static_cast<size_t>(columns_) * columns_, latest_);
  writers_.assign(words, {});
  released_.clear();
}

int SharedRaces::Read(int warp, int64_t offset, int64_t size_bytes) {
  const uint32_t now = Time(warp, warp);
  const int64_t end = (offset + size_bytes) / kWord;
  for (int64_t word = offset / kWord; word < end; ++word) {
    const Writer& writer = writers_[word];
    if (!IsOrdered(warp, writer)) return writer.warp;
    reads_[word * warps_ + warp] = now;
  }
  return -1;
}

// Whoever has read later than `warp` knows. Its own reads it knows of.
int SharedRaces::FirstUnordered(int warp, const uint32_t* reads) {
  const uint32_t* const known = &Time(warp, 0);
  bool is_ordered = true;
  for (int reader = 0; reader < warps_; ++reader) {
    is_ordered &= reads[reader] <= known[reader];
  }
  if (is_ordered) return -1;
  int reader = 0;
  while (reads[reader] <= known[reader]) ++reader;
  return reader;
}

int SharedRaces::CheckWrite(int warp, int64_t word) {
  const Writer& writer = writers_[word];
  if (!IsOrdered(warp, writer)) return writer.warp;
  return FirstUnordered(warp, &reads_[word * warps_]);
}

int SharedRaces::Write(int warp, int64_t offset, int64_t size_bytes) {
  const Writer now{Time(warp, warp), warp};
  const int64_t end = (offset + size_bytes) / kWord;
  for (int64_t word = offset / kWord; word < end; ++word) {
    const int other = CheckWrite(warp, word);
    if (other >= 0) return other;
    writers_[word] = now;
  }
  return -1;
}

SharedRaces::ProductOrder SharedRaces::OrderOfProduct(int first) {
  ProductOrder order{first, std::vector<uint32_t>(columns_, ~0u), {}};
  for (int part = 0; part < 4; ++part) {
    const int warp = first + part;
    order.times[part] = Time(warp, warp);
    for (int of = 0; of < columns_; ++of) {
      uint32_t limit = Time(warp, of);
      if (of != copier()) {
        limit = std::min(limit, std::max(Fenced(of, of), Fenced(warp, of)));
      }
      order.limits[of] = std::min(order.limits[of], limit);
    }
  }
  return order;
}

int SharedRaces::ReadByProduct(const ProductOrder& order, int64_t offset,
                               int64_t size_bytes) {
  const int64_t end = (offset + size_bytes) / kWord;
  for (int64_t word = offset / kWord; word < end; ++word) {
    const Writer& writer = writers_[word];
    if (writer.time > order.limits[writer.warp]) return writer.warp;
    std::memcpy(&reads_[word * warps_ + order.first], order.times.data(),
                sizeof(order.times));
  }
  return -1;
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
