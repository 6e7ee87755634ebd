// Which of a block's stages comes next. Producers wait for free ones and fill
// them, consumers wait for full ones.
#ifndef KILN_KERNEL_SOURCES_STAGE_CURSOR_CUH_
#define KILN_KERNEL_SOURCES_STAGE_CURSOR_CUH_

namespace kiln {

// The stage that comes next, for producer and consumers alike.
template <int kStages>
struct StageCursor {
  int stage;
  unsigned rounds = 0;  // a bit for each stage: how often used, modulo 2

  __device__ explicit StageCursor(int first) : stage(first) {}

  __device__ unsigned round() const { return rounds >> stage & 1; }
  // The stage of `count` chunks before, fewer than there are stages.
  __device__ int Before(int count) const {
    return stage < count ? stage - count + kStages : stage - count;
  }
  __device__ void Use() { rounds ^= 1u << stage; }
  __device__ void Advance(int step) {
    stage += step;
    if (stage >= kStages) stage -= kStages;
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_STAGE_CURSOR_CUH_
