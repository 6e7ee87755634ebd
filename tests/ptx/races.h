#ifndef KILN_TESTS_PTX_RACES_H_
#define KILN_TESTS_PTX_RACES_H_

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

namespace kiln::ptx {

// Finds accesses to a block's shared memory that no barrier orders, whether or
// not they come in the wrong order this time. Each warp has a clock, which its
// releases advance, and knows by its acquires how far the others' had come
// (vector clocks). For every word is known who wrote it last and when, and when
// each warp last read it. Accesses of one warp are ordered, and those to less
// than a word are not looked at. Of a page of words is known when each warp
// last wrote and read any: mostly that is before all that must be, and words
// need not be looked at.
//
// Bulk copies have a clock of their own. What products read must have been
// fenced since it was written (fence.proxy.async): by its writer, or by a warp
// that multiplies and knows of it.
class SharedRaces {
 public:
  // For a block that begins; places are offsets in its shared memory.
  void Start(int warps, int64_t shared_bytes);

  // Each returns the warp whose access is not ordered before this one, or -1.
  int Read(int warp, int64_t offset, int64_t size_bytes);
  int Write(int warp, int64_t offset, int64_t size_bytes);

  // What a product of four warps, `first` and those behind it, may read.
  struct ProductOrder {
    int first = 0;
    std::vector<uint32_t> limits;        // of each: writes until then
    std::array<uint32_t, 4> times = {};  // of the four
    int64_t page = -1;                   // the last, all of which may be read
  };
  ProductOrder OrderOfProduct(int first);
  // 16 bytes, at a multiple of them.
  int ReadByProduct(ProductOrder* order, int64_t offset);
  // Begins a copy; `time` is to be given to `EndCopy`.
  int BeginCopy(int warp, int64_t offset, int64_t size_bytes, uint32_t* time);

  void Fence(int warp);
  // All of them know what each has done.
  void Meet(const std::vector<int>& warps);
  // By the barrier at `offset`.
  void Release(int warp, int64_t offset);
  void Acquire(int warp, int64_t offset);
  void EndCopy(int64_t offset, uint32_t time);

 private:
  struct Writer {
    uint32_t time = 0;
    int warp = 0;
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  using Times = std::unique_ptr<uint32_t[], Free>;
  static Times Zeros(int64_t count);

  // Words of one page.
  struct Words {
    int64_t page;
    int64_t begin;
    int64_t end;
  };

  // Calls `body` for the words of each page until one gives a warp, which it
  // returns, or -1.
  template <typename Body>
  int ForPages(int64_t offset, int64_t size_bytes, Body body);

  // What `warp` knows of the time of `of`; for itself, the present.
  uint32_t& Time(int warp, int of) { return times_[warp * columns_ + of]; }
  // Until when `warp` has fenced what it knew of `of`.
  uint32_t& Fenced(int warp, int of) { return fenced_[warp * columns_ + of]; }
  int copier() const { return warps_; }
  // Of a page, when each last wrote or read.
  uint32_t* PageWrites(int64_t page) { return &page_writes_[page * columns_]; }
  uint32_t* PageReads(int64_t page) { return &page_reads_[page * columns_]; }
  // When the four warps that `warp` is of last read a unit by products.
  uint32_t* ProductReads(int warp, int64_t unit) {
    return &product_reads_[(warp / 4 * units_ + unit) * 4];
  }
  // When `warp` last read a word.
  uint32_t ReadTime(int warp, int64_t word);
  bool AreReadsKnown(int warp, const Words& words);
  void Join(const std::vector<uint32_t>& times, int warp);
  bool IsOrdered(int warp, const Writer& writer) {
    return writer.warp == warp || writer.time <= Time(warp, writer.warp);
  }
  // The warp whose write is behind its limit, or -1.
  int CheckWords(const uint32_t* limits, const Words& words);
  int CheckRead(int warp, const Words& words);
  int CheckWrite(int warp, const Words& words);
  int CheckWord(int warp, int64_t word);
  void NoteWrite(const Writer& writer, const Words& words);
  void NoteRead(int warp, uint32_t time, const Words& words);

  int warps_ = 0;
  int64_t words_ = 0;
  int64_t units_ = 0;    // of four words
  int columns_ = 0;      // the warps and the copier, to a multiple of 8
  uint32_t latest_ = 0;  // no clock is ahead of this
  std::vector<uint32_t> times_;
  std::vector<uint32_t> fenced_;  // of each warp, as of each: writes until then
  std::vector<Writer> writers_;   // by word
  // By warp and word, and of products by warpgroup, unit of four words and
  // warp. What is not touched takes no time: most of shared memory is not read
  // in most blocks.
  Times reads_;
  Times product_reads_;
  std::vector<uint32_t> page_writes_;  // by page and column
  std::vector<uint32_t> page_reads_;
  std::map<int64_t, std::vector<uint32_t>> released_;  // by barrier
};

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_RACES_H_
