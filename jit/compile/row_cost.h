#ifndef KILN_JIT_COMPILE_ROW_COST_H_
#define KILN_JIT_COMPILE_ROW_COST_H_

#include <cstdint>

#include "jit/compile/row_geometry.h"

namespace kiln {

// What it costs to keep the rows of `work`, in microseconds of an H100 with
// `sm_count` multiprocessors. `work` must outlive it.
class RowCost {
 public:
  RowCost(const RowWork& work, int sm_count);

  // Nobody keeps them: two kernels, or three where rows are split; of several
  // reductions each its own.
  double PlainUs() const;
  // In the registers of threads.
  double RegistersUs(const RowGeometry& geometry) const;
  // In the shared memory of blocks, `resident` of them on a multiprocessor.
  double BlocksUs(const RowGeometry& geometry, int64_t resident) const;
  // By teams.
  double TeamUs(const RowGeometry& geometry) const;

  // In which a multiprocessor loads so much.
  static double LoadCycles(int64_t bytes);

 private:
  double LoadedBytes() const;
  double StoredBytes() const;
  double Microseconds(double bytes) const;
  bool Copies(const RowGeometry& geometry) const;
  double Held(const RowGeometry& geometry) const;
  double OperationsUs(const RowGeometry& geometry, double waves,
                      int64_t resident) const;
  double BlocksUs(const RowGeometry& geometry, int64_t resident,
                  double element_us, double merge_us) const;

  const RowWork& work_;
  const int sm_count_;
  const double elements_;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROW_COST_H_
