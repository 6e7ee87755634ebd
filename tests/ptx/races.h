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
// than a word are not looked at.
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
  };
  ProductOrder OrderOfProduct(int first);
  int ReadByProduct(const ProductOrder& order, int64_t offset,
                    int64_t size_bytes);
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

  // What `warp` knows of the time of `of`; for itself, the present.
  uint32_t& Time(int warp, int of) { return times_[warp * columns_ + of]; }
  // Until when `warp` has fenced what it knew of `of`.
  uint32_t& Fenced(int warp, int of) { return fenced_[warp * columns_ + of]; }
  int copier() const { return warps_; }
  void Join(const std::vector<uint32_t>& times, int warp);
  bool IsOrdered(int warp, const Writer& writer) {
    return writer.warp == warp || writer.time <= Time(warp, writer.warp);
  }
  int FirstUnordered(int warp, const uint32_t* reads);
  int CheckWrite(int warp, int64_t word);

  int warps_ = 0;
  int columns_ = 0;      // the warps and the copier
  uint32_t latest_ = 0;  // no clock is ahead of this
  std::vector<uint32_t> times_;
  std::vector<uint32_t> fenced_;  // of each warp, as of each: writes until then
  std::vector<Writer> writers_;   // by word
  // By word and warp. Pages that are not touched take no time: most of shared
  // memory is not read in most blocks.
  std::unique_ptr<uint32_t[], Free> reads_;
  size_t num_reads_ = 0;
  std::map<int64_t, std::vector<uint32_t>> released_;  // by barrier
};

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_RACES_H_
