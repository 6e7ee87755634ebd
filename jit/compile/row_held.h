#ifndef KILN_JIT_COMPILE_ROW_HELD_H_
#define KILN_JIT_COMPILE_ROW_HELD_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "jit/compile/element_code.h"
#include "jit/compile/schedule.h"

namespace kiln {

// Writes how kernels that keep rows on chip reach the tensors of their element
// code: each of `read` makes what a statistic is taken of, `element` the
// results. All must outlive it.
class RowHeld {
 public:
  RowHeld(const Kernel& kernel, const KernelTensors& tensors,
          std::vector<const ElementCode*> read, const ElementCode& element)
      : kernel_(kernel),
        tensors_(tensors),
        read_(std::move(read)),
        element_(element) {}

  // Members of a Spec:
  //   struct Held            what a thread holds of each tensor
  //   Source, CopiedIn       the tensor that is copied to its places, and where
  //                          Held has it; if there is one
  //   FetchForRead, FetchForElement, PutResults, IsAligned
  std::vector<std::string> Lines() const;

  // What else kernels of several reductions need that keep, in shared memory,
  // all whole tensors that `read` reads. Members: Kept, KeptIn, BeginCopies,
  // Recall.
  std::vector<std::string> KeptLines() const;
  // Bytes of an element of all of them.
  int64_t KeptBytes() const;

  // What else kernels of a team need: the inputs of which chunks lie in a ring,
  // one behind the other. Members: ForEachInput, Staged.
  std::vector<std::string> StagingLines() const;
  // Bytes of an element of all of them.
  int64_t StagedBytes() const;

  // The only whole tensor that `read` reads.
  const KernelTensor& CopiedTensor() const;

 private:
  // How element code sees a tensor: a vector of the elements at hand, also
  // where it is broadcast but runs with w; else the tensor itself. Tensors that
  // only a reduction behind the rows touches are not seen.
  enum class View { kNone, kWhole, kAlongW, kTensor };

  const RowGeometry& rows() const { return *kernel_.rows; }
  bool is_team() const { return rows().keeper == RowKeeper::kTeam; }
  bool is_chain() const { return rows().keeper == RowKeeper::kChain; }
  bool keeps() const { return rows().kept_bytes > 0; }
  bool is_held_through() const { return rows().is_warp_chain(); }
  std::vector<const ElementCode*> Codes(bool reads) const;
  bool IsAccessed(const KernelTensor& tensor, bool reads) const;
  bool IsReadWhole(const KernelTensor& tensor) const;
  std::vector<KernelTensor> KeptTensors() const;
  std::set<std::string> IndicesOf(const KernelTensor& tensor) const;
  View ViewOf(const KernelTensor& tensor) const;
  bool IsHeldAlready(const KernelTensor& tensor, bool reads) const;
  std::vector<KernelTensor> WholeInputs() const;

  std::vector<std::string> StructLines() const;
  std::vector<std::string> CopiedLines() const;
  std::string FetchText(const KernelTensor& tensor, bool reads) const;
  std::vector<std::string> FetchLines(bool reads) const;
  std::vector<std::string> PutLines() const;
  std::vector<std::string> AlignedLines() const;

  const Kernel& kernel_;
  const KernelTensors& tensors_;
  const std::vector<const ElementCode*> read_;
  const ElementCode& element_;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ROW_HELD_H_
