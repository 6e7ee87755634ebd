#ifndef KILN_JIT_COMPILE_SCHEDULE_MEMORY_H_
#define KILN_JIT_COMPILE_SCHEDULE_MEMORY_H_

#include <cstdint>
#include <set>
#include <vector>

#include "jit/artifact/target.h"
#include "jit/compile/schedule.h"
#include "jit/compile/workspace.h"

namespace kiln {

// The plan's outputs that are `value`.
std::vector<Store> OutputsOf(const Schedule& schedule, int value);

// Where the kernels of a schedule leave what the caller, later kernels or their
// own blocks need of them.
class ScheduleMemory {
 public:
  // The kernels of `schedule` and their geometry are decided. It must outlive
  // this.
  ScheduleMemory(const Target& target, Schedule* schedule);

  // Fills in stores to outputs and values' homes in these, and finds out what
  // has to lie in the workspace.
  void AddStores();
  // Lays the workspace out, and fills in everything else that lies there:
  // stores and homes, what kernels leave for each other, and what is to be
  // zero.
  void LayOutWorkspace();

 private:
  // What lies in the workspace: a value, partial states, packed weights, or
  // counts of blocks.
  struct Buffer {
    int kernel = 0;  // that fills it
    int value = -1;  // -1: not a value
    Lifetime lifetime;
    bool counts = false;
  };

  const Node& NodeAt(int index) const;
  const TensorDesc& DescOf(int value) const;

  void AddNeeds(int index);
  void AddRowNeeds(int index);
  void AddReduceNeeds(int index);
  void AddConvNeeds(int index);
  void AddPackedWeights(int index);
  void AddLaidLines(int index);
  void AddSplitRows(int index);
  void AddRecords(int index, int64_t channels);
  void AddProgress(int index);

  void AddStoresOf(int index);
  void AddStoresOf(int index, const Node& node);
  void AddLaidResults(int index, int value, int last_user);
  int LastUser(int value) const;
  bool Reads(const Kernel& kernel, int value) const;
  bool IsReadAgain(const Kernel& kernel, int value) const;

  void Fill(const Buffer& buffer, const Place& place);
  void FillValue(const Buffer& buffer, Place place);
  void FindWhatOthersLeave(Kernel* kernel) const;
  void AddZero(const Buffer& buffer, const Place& place, ZeroWhen when);

  const Target& target_;
  Schedule& schedule_;
  std::vector<Buffer> buffers_;
  std::set<int> stored_;  // nodes whose results have been taken care of
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SCHEDULE_MEMORY_H_
