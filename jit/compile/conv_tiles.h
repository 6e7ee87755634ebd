#ifndef KILN_JIT_COMPILE_CONV_TILES_H_
#define KILN_JIT_COMPILE_CONV_TILES_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "jit/compile/conv_choice.h"
#include "jit/compile/conv_geometry.h"

namespace kiln {

// What the searches for tiles share: what is asked, and the fastest tile so
// far.
class ConvTiles {
 public:
  ConvTiles(const ConvProblem& problem, const ConvDemands& demands,
            const ConvOptions& options);

  // Tiles of another problem follow, which is the same convolution.
  void Join(const ConvProblem& joined) { base_.problem = joined; }

  // A geometry that has only what all tiles have in common.
  const ConvGeometry& base() const { return base_; }
  const ConvDemands& demands() const { return demands_; }
  const ConvOptions& options() const { return options_; }
  const std::optional<ConvGeometry>& best() const { return best_; }
  int sm_count() const { return sm_count_; }
  int64_t most_shared() const { return most_shared_; }  // bytes of a block

  // Registers of a thread that are to stay free for what the plan computes.
  int64_t spare_registers() const { return options_.spare_registers; }
  // That statistics of group_norm, or what is kept of images, take where pixels
  // are rows.
  int64_t StatisticsRegisters(const ConvGeometry& geometry) const;

  // Takes the tile if a strip of some length makes it the fastest and shared
  // memory suffices, and says whether that does. Who listens to the search is
  // told.
  bool Offer(ConvGeometry geometry);
  // A tile for whose sums there are not enough registers.
  void Refuse(const ConvGeometry& geometry);

 private:
  // In tiles.
  int64_t LongestStrip(const ConvGeometry& geometry) const;
  void Compare(ConvGeometry geometry);
  void CompareRounds(ConvGeometry geometry, double tile_cycles);
  void CompareWalks(ConvGeometry geometry, double tile_cycles);
  void Take(const ConvGeometry& geometry, double cycles);
  bool IsRefused(const ConvGeometry& geometry) const;
  // Whether shared memory suffices; who listens to the search is told if not.
  bool FindRoom(const ConvGeometry& geometry) const;
  bool OfferHeld(ConvGeometry geometry);
  bool SuitsHeldWindows(const ConvGeometry& geometry) const;
  double HeldRank(const ConvGeometry& geometry) const;
  void CompareHeld(const ConvGeometry& geometry);

  const ConvDemands demands_;
  const ConvOptions& options_;
  const int sm_count_;
  const int64_t most_shared_;
  ConvGeometry base_;
  std::optional<ConvGeometry> best_;
  double best_cycles_ = 0.0;
};

// Offer the tiles of conv_mma.cu, and of conv_wgmma.cu where that suits the
// target and the convolution.
void OfferWarpTiles(ConvTiles* tiles);
void OfferGroupTiles(ConvTiles* tiles);

// Whether threads of warpgroups that have the sums of this tile have registers
// for what follows them.
bool GroupSumsFit(const ConvTiles& tiles, const ConvGeometry& geometry);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_TILES_H_
