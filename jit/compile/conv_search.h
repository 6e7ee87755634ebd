#ifndef KILN_JIT_COMPILE_CONV_SEARCH_H_
#define KILN_JIT_COMPILE_CONV_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/compile/conv_choice.h"
#include "jit/compile/conv_geometry.h"

namespace kiln {

// The tiles of one layout of warps, as a search saw them.
struct ConvLayout {
  ConvGeometry layout;               // of which only that counts
  std::optional<ConvGeometry> best;  // empty: no tile fits
  double cycles = 0.0;               // predicted, of `best`
  int64_t fitting = 0;
  int64_t short_of_registers = 0;
  int64_t short_of_shared_memory = 0;
};

// Listens to a search for tiles (ConvOptions::search) and keeps the fastest of
// each layout, for people who want to know what else there was.
class ConvSearch {
 public:
  void Fits(const ConvGeometry& geometry, double cycles);
  void LacksRegisters(const ConvGeometry& geometry);
  void LacksSharedMemory(const ConvGeometry& geometry);

  // Fastest first; layouts without a tile that fits come last.
  std::vector<ConvLayout> Layouts() const;

 private:
  ConvLayout& LayoutOf(const ConvGeometry& geometry);

  std::vector<ConvLayout> layouts_;
};

// What searches have chosen (ConvOptions::known): plans are scheduled in
// several ways, most of whose convolutions are the same. Of one thread.
class KnownTiles {
 public:
  using Choice = std::optional<ConvGeometry>;

  // Null if there was no search for these.
  const Choice* Find(const ConvProblem& problem, const ConvDemands& demands,
                     int rank) const;
  void Keep(const ConvProblem& problem, const ConvDemands& demands, int rank,
            const Choice& choice);

 private:
  struct Known {
    ConvProblem problem;
    ConvDemands demands;
    int rank = 0;
    Choice choice;
  };
  std::vector<Known> known_;
};

// As ChooseConvGeometry, but the best tile of the layout of the given rank:
// 0 is the fastest, and beyond the last means the last.
std::optional<ConvGeometry> ChooseConvGeometryOfRank(const ConvProblem& problem,
                                                     const ConvDemands& demands,
                                                     const ConvOptions& options,
                                                     int rank);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_SEARCH_H_
