#include "tests/ptx/races.h"

#include <algorithm>
#include <cstring>

namespace kiln::ptx {
namespace {

constexpr int64_t kWord = 4;

// What products read at a time.
constexpr int64_t kUnitWords = 4;

// So few that warps rarely use one at a time, and so many that an access of a
// warp is mostly within one.
constexpr int64_t kPageWords = 64;

// Columns that are compared at a time.
constexpr int kColumns = 8;
using Columns = uint32_t __attribute__((vector_size(kColumns * 4)));
using Bits = uint64_t __attribute__((vector_size(sizeof(Columns))));

// Whether no time is behind its limit.
bool AreWithin(const uint32_t* times, const uint32_t* limits, int columns) {
  for (int first = 0; first < columns; first += kColumns) {
    Columns time;
    Columns limit;
    std::memcpy(&time, times + first, sizeof(time));
    std::memcpy(&limit, limits + first, sizeof(limit));
    const auto behind = reinterpret_cast<Bits>(time > limit);
    if ((behind[0] | behind[1] | behind[2] | behind[3]) != 0) return false;
  }
  return true;
}

}  // namespace

// Clocks go on from where those of the last block stood, all of which is known,
// so that nothing need be cleared.
void SharedRaces::Start(int warps, int64_t shared_bytes) {
  for (const uint32_t time : times_) latest_ = std::max(latest_, time);
  const int64_t words = (shared_bytes + kWord - 1) / kWord;
  if (warps != warps_ || words != words_) {
    warps_ = warps;
    words_ = words;
    columns_ = (warps + kColumns) / kColumns * kColumns;
    const int64_t pages = (words + kPageWords - 1) / kPageWords;
    const int64_t groups = (warps + 3) / 4;
    units_ = (words + kUnitWords - 1) / kUnitWords;
    reads_ = Zeros(warps * words);
    product_reads_ = Zeros(groups * units_ * 4);
    writers_.assign(words, {});
    page_writes_.assign(pages * columns_, 0);
    page_reads_.assign(pages * columns_, 0);
  }
  times_.assign(static_cast<size_t>(columns_) * columns_, latest_);
  for (int i = 0; i < columns_; ++i) ++Time(i, i);
  fenced_.assign(static_cast<size_t>(columns_) * columns_, latest_);
  released_.clear();
}

SharedRaces::Times SharedRaces::Zeros(int64_t count) {
  return Times(static_cast<uint32_t*>(std::calloc(count, sizeof(uint32_t))));
}

template <typename Body>
int SharedRaces::ForPages(int64_t offset, int64_t size_bytes, Body body) {
  const int64_t end = (offset + size_bytes) / kWord;
  for (int64_t word = offset / kWord; word < end;) {
    const int64_t page = word / kPageWords;
    const int64_t page_end = std::min(end, (page + 1) * kPageWords);
    const int other = body(Words{page, word, page_end});
    if (other >= 0) return other;
    word = page_end;
  }
  return -1;
}

int SharedRaces::CheckWords(const uint32_t* limits, const Words& words) {
  for (int64_t word = words.begin; word < words.end; ++word) {
    const Writer& writer = writers_[word];
    if (writer.time > limits[writer.warp]) return writer.warp;
  }
  return -1;
}

int SharedRaces::CheckRead(int warp, const Words& words) {
  const uint32_t* const known = &Time(warp, 0);
  if (AreWithin(PageWrites(words.page), known, columns_)) return -1;
  return CheckWords(known, words);
}

uint32_t SharedRaces::ReadTime(int warp, int64_t word) {
  return std::max(reads_[warp * words_ + word],
                  ProductReads(warp, word / kUnitWords)[warp % 4]);
}

bool SharedRaces::AreReadsKnown(int warp, const Words& words) {
  const uint32_t* const of_page = PageReads(words.page);
  for (int reader = 0; reader < warps_; ++reader) {
    const uint32_t known = Time(warp, reader);
    if (of_page[reader] <= known) continue;
    for (int64_t word = words.begin; word < words.end; ++word) {
      if (ReadTime(reader, word) > known) return false;
    }
  }
  return true;
}

// Its own reads and writes a warp knows of.
int SharedRaces::CheckWrite(int warp, const Words& words) {
  const uint32_t* const known = &Time(warp, 0);
  if (CheckRead(warp, words) < 0 &&
      (AreWithin(PageReads(words.page), known, columns_) ||
       AreReadsKnown(warp, words))) {
    return -1;
  }
  for (int64_t word = words.begin; word < words.end; ++word) {
    const int other = CheckWord(warp, word);
    if (other >= 0) return other;
  }
  return -1;
}

int SharedRaces::CheckWord(int warp, int64_t word) {
  const Writer& writer = writers_[word];
  if (!IsOrdered(warp, writer)) return writer.warp;
  for (int reader = 0; reader < warps_; ++reader) {
    if (ReadTime(reader, word) > Time(warp, reader)) return reader;
  }
  return -1;
}

void SharedRaces::NoteWrite(const Writer& writer, const Words& words) {
  std::fill(&writers_[words.begin], writers_.data() + words.end, writer);
  PageWrites(words.page)[writer.warp] = writer.time;
}

void SharedRaces::NoteRead(int warp, uint32_t time, const Words& words) {
  uint32_t* const times = reads_.get() + warp * words_;
  for (int64_t word = words.begin; word < words.end; ++word) times[word] = time;
  PageReads(words.page)[warp] = time;
}

int SharedRaces::Read(int warp, int64_t offset, int64_t size_bytes) {
  return ForPages(offset, size_bytes, [&](const Words& words) {
    const int other = CheckRead(warp, words);
    if (other < 0) NoteRead(warp, Time(warp, warp), words);
    return other;
  });
}

int SharedRaces::Write(int warp, int64_t offset, int64_t size_bytes) {
  return ForPages(offset, size_bytes, [&](const Words& words) {
    const int other = CheckWrite(warp, words);
    if (other < 0) NoteWrite({Time(warp, warp), warp}, words);
    return other;
  });
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

int SharedRaces::ReadByProduct(ProductOrder* order, int64_t offset) {
  const int64_t word = offset / kWord;
  const int64_t page = word / kPageWords;
  if (page != order->page) {
    const uint32_t* const limits = order->limits.data();
    if (AreWithin(PageWrites(page), limits, columns_)) {
      order->page = page;
    } else {
      const int other = CheckWords(limits, {page, word, word + kUnitWords});
      if (other >= 0) return other;
    }
    std::copy_n(order->times.data(), 4, PageReads(page) + order->first);
  }
  std::copy_n(order->times.data(), 4,
              ProductReads(order->first, word / kUnitWords));
  return -1;
}

int SharedRaces::BeginCopy(int warp, int64_t offset, int64_t size_bytes,
                           uint32_t* time) {
  *time = Time(copier(), copier())++;
  return ForPages(offset, size_bytes, [&](const Words& words) {
    const int other = CheckWrite(warp, words);
    if (other < 0) NoteWrite({*time, copier()}, words);
    return other;
  });
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
