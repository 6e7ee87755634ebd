// Longer than 400 lines because one class tries all tiles of warpgroups.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "jit/compile/compute_capability.h"
#include "jit/compile/conv_shared.h"
#include "jit/compile/conv_tiles.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int kMaxColumns = 256;  // of a warpgroup's product
constexpr int kMaxColumnsOfPlanes = 128;
constexpr int kMaxColumnsOfWindows = 192;  // in planes
constexpr int kRowsOfGroup = 64;           // of a warpgroup's product
constexpr int kWideTile = 64;              // images are cut into narrower ones
constexpr int64_t kMostPhases = 8;         // of a tile: what registers hold
constexpr int kMaxGroups = 5;
constexpr int kMaxStages = 4;
constexpr int kBatchesAhead = 2;      // with three, 32 plans took as long
constexpr int64_t kMaxProducts = 96;  // of a chunk, in a loop or not
constexpr int64_t kMaxProductsOfSixteen = 160;  // 7 x 7 of three pairs: 147
// Columns of products that rows of eight pixels save where they pay, of those
// that whole rows take, halo included (30 plans on an H100: a ninth does not
// pay, a fifth does).
constexpr double kLeastSaved = 1.0 / 6;

class GroupTiles {
 public:
  explicit GroupTiles(ConvTiles* tiles)
      : tiles_(*tiles), demands_(tiles->demands()) {}

  void Run() {
    if (!Suits()) return;
    const int64_t octet_columns = tiles_.base().problem.octet_columns();
    const std::set<int> row_parts = RowParts();
    for (const auto& [m, n] :
         {std::pair(1, 1), {2, 1}, {1, 2}, {3, 1}, {1, 3}, {4, 1}, {1, 4}}) {
      for (const auto& [resident, producers] :
           {std::pair(1, 2), {1, 1}, {2, 1}}) {
        if (m * n + producers > kMaxGroups) continue;
        ConvGeometry g = tiles_.base();
        g.groups_m = m;
        g.groups_n = n;
        g.octet_columns = octet_columns;
        g.pairs_columns = tiles_.base().problem.pairs_columns();
        g.takes_pairs = CanTakePairs();
        g.resident_blocks = resident;
        g.producers = producers;
        if (producers == 1 && CanLayLines()) TryLaidLines(g);
        if (NeedsLaidLines()) continue;
        TryPhases(g);
        for (const int parts : row_parts) TryRowParts(g, parts);
        if (producers == 1 && CanTakeLines()) TryLines(g);
        if (CanTurnLines()) TryTurnedLines(g);
      }
    }
  }

 private:
  // Windows know of no phases, and phases of no dilation.
  bool Suits() const {
    const ConvProblem& p = tiles_.base().problem;
    const bool has_phases = p.has_insert();
    if (has_phases && demands_.windows.any()) return false;
    if (p.has_channel_phases() && !OnlyStoresSums()) return false;
    for (size_t i = 0; i < 2; ++i) {
      if (p.insert[i] > 1 && p.dilation[i] != 1) return false;
    }
    return tiles_.options().target.arch == "sm_90a";
  }

  // Into how many parts of its rows a filter may be cut. With a stride a patch
  // has a plane for each of its residues, of which a part of the rows needs
  // fewer, and a row of a dilated filter one. Of a large filter whose operands
  // are scaled as many as make products of a chunk so few that they can be
  // written one by one (kMaxProducts). Weights of a part leave room in shared
  // memory. Of operands that are multiplied as they are stored no row is in two
  // parts, for the smallest weights of 16 bits have no half.
  std::set<int> RowParts() const {
    constexpr int64_t kFewestTaps = 49;
    constexpr int64_t kFewestTapsWithStride = 9;
    constexpr int64_t kMostTapsOfPart = 33;  // three rows of 11 x 11
    constexpr int kFewestRowsOfHalves = 4;
    const ConvProblem& p = tiles_.base().problem;
    if (p.has_insert() || p.wraps_rows || p.kernel[0] == 1) return {};
    const int rows = static_cast<int>(p.kernel[0]);
    const bool has_stride = p.stride[0] > 1;
    if (has_stride && p.dilation[0] > 1) return {rows};
    std::set<int> parts;
    if (has_stride && p.taps() >= kFewestTapsWithStride) parts.insert(rows);
    if (has_stride && rows >= kFewestRowsOfHalves &&
        (rows % 2 == 0 || !p.takes_as_stored())) {
      parts.insert(2);
    }
    if (!p.takes_as_stored() && p.taps() >= kFewestTaps) {
      const int64_t most = std::max(kMostTapsOfPart / p.kernel[1], int64_t{1});
      parts.insert(static_cast<int>(CeilDiv(p.kernel[0], most)));
    }
    parts.erase(1);
    return parts;
  }

  // Patches then have no rows that no tap reads. Of two phases alone tiles gain
  // less by that than by rows that the tile above has (measured in `tf32`),
  // which operands that are multiplied as they are stored do not take from it.
  bool CanInterleave() const {
    const ConvProblem& p = tiles_.base().problem;
    if (p.dilation[0] < (p.takes_as_stored() ? 2 : 3)) return false;
    return p.kernel[0] > 1 && !p.has_stride() && !p.has_insert() &&
           !demands_.windows.any();
  }

  // Planes are not reduced over images; and beside windows that lay tiles out
  // statistics of planes take longer than those of rows of pixels (seven plans
  // on an H100).
  bool CanHaveChannelRows() const {
    if (demands_.has_statistics && demands_.windows.lay_out_tiles()) {
      return false;
    }
    if (demands_.reduces_images) return !demands_.needs_planes();
    return !demands_.all_channels_in_a_block || CanReduceRuns();
  }

  // Over channels, from registers, where a warpgroup has all of them and ops
  // read the sums alone. Two warpgroups that share pixels, or rows of a product
  // that are no channels, were slower than rows of pixels (nine plans on an
  // H100).
  bool CanReduceRuns() const {
    const ConvProblem& p = tiles_.base().problem;
    return demands_.in_registers() && !demands_.stores && p.groups == 1 &&
           p.output[1] == kRowsOfGroup && !p.has_insert();
  }

  // Both of the columns, where whole rows are stored. Statistics are then taken
  // from registers, where channels are rows.
  bool CanMergePhases(const ConvGeometry& g) const {
    if (g.problem.insert[1] > 2) return CanMergePartOfPhases(g);
    if (!demands_.stores) return false;
    if (g.channel_rows) {
      return !demands_.has_statistics || demands_.in_registers();
    }
    return g.StagesResults(demands_) && !demands_.has_statistics &&
           !demands_.all_channels_in_a_block;
  }

  // All of more than two, or a part of them: an even number, as two pixels of
  // them are stored at once. A part begins at the same column of the patch in
  // each of its phases, and is stored by accesses of 8 bytes at least (of 4,
  // f16 took 1.5 times as long as in all phases).
  bool CanMergePartOfPhases(const ConvGeometry& g) const {
    constexpr int64_t kFewestBytes = 8;
    const ConvProblem& p = g.problem;
    const bool has_all = g.column_phases == p.insert[1];
    const bool is_alike =
        !g.has_uneven_phases(1) && g.phase_start(1) % g.column_phases == 0;
    const int64_t bytes = (g.column_phases & -g.column_phases) *
                          ElementSize(demands_.stored_type);
    return g.channel_rows && OnlyStoresSums() && g.column_phases % 2 == 0 &&
           g.column_phases <= kMostPhases && p.output[3] % p.insert[1] == 0 &&
           (has_all || (is_alike && bytes >= kFewestBytes));
  }

  // And both of the rows, where results go to memory from registers.
  bool CanMergeRows(const ConvGeometry& g) const {
    const ConvProblem& p = g.problem;
    return p.has_one_tap() && p.insert == Pair{2, 2} && p.output[2] % 2 == 0 &&
           g.channel_rows && OnlyStoresSums();
  }
  bool OnlyStoresSums() const {
    return demands_.stores && demands_.leaves_one_value &&
           !demands_.has_statistics;
  }

  bool CanTakePairs() const {
    const ConvProblem& p = tiles_.base().problem;
    return p.takes_as_stored() && p.octet_columns() == 1 && p.stride[1] == 1 &&
           p.insert[1] == 1 && p.input[3] % 2 == 0;
  }

  // Of rows that begin where an access of 16 bytes may. Not in an attempt
  // behind one that lacked registers.
  bool CanTurnLines() const {
    const ConvProblem& p = tiles_.base().problem;
    return p.takes_as_stored() && p.octet_columns() == 1 &&
           p.input[3] % 8 == 0 && !tiles_.base().spares_registers;
  }

  // Of a filter of one tap, whose input's rows begin where an access of 8
  // bytes may. Not beside statistics: blocks that hold images and take octets
  // are faster (46 and 53 us of one plan on an H100).
  bool CanTakeLines() const {
    const ConvProblem& p = tiles_.base().problem;
    return p.takes_as_stored() && p.has_one_tap() && p.joined == 1 &&
           p.input[3] % 4 == 0 && SuitsLines();
  }
  bool SuitsLines() const {
    return tiles_.base().problem.octet_columns() == 1 &&
           !demands_.windows.any() && !demands_.has_statistics;
  }

  // Rows of what is laid down begin where any access may.
  bool CanLayLines() const {
    return MayLayLines(tiles_.base().problem) && SuitsLines();
  }

  // Of an input that is nothing else, or for the scales of the results.
  bool NeedsLaidLines() const {
    return tiles_.base().problem.input_is_laid || demands_.leaves_lines;
  }

  // Blocks that hold images have tiles that are parts of one.
  bool CanHold(const ConvGeometry& g) const {
    return g.channel_rows && g.resident_blocks == 1 && !g.interleaves &&
           !g.problem.has_insert() && demands_.in_registers();
  }

  void TryRowParts(ConvGeometry g, int parts) {
    g.row_parts = parts;
    TryPhases(g);
  }

  void TryLines(ConvGeometry g) {
    g.takes_pairs = false;
    g.takes_lines = true;
    TryLayouts(g);
  }

  void TryLaidLines(ConvGeometry g) {
    g.lays_lines = true;
    TryLines(g);
  }

  void TryTurnedLines(ConvGeometry g) {
    g.takes_pairs = false;
    g.turns_lines = true;
    TryPhases(g);
  }

  // With rows as they are, and with those that a dilated filter has together.
  void TryPhases(ConvGeometry g) {
    TryLayouts(g);
    if (!CanInterleave()) return;
    g.interleaves = true;
    TryLayouts(g);
  }

  void TryLayouts(const ConvGeometry& g) {
    for (const bool channel_rows : {false, true}) {
      if (NeedsChannelRows(g) && !channel_rows) continue;
      if (channel_rows && !CanHaveChannelRows()) continue;
      ConvGeometry rows = g;
      rows.channel_rows = channel_rows;
      if (demands_.holds_images) {
        if (!CanHold(rows)) continue;
        rows.teams = 1;  // as many as fit, once the tile is known
      }
      TryRows(rows);
      TryMerged(rows);
    }
  }
  // Several phases of columns in a tile: all, or a part that divides them.
  void TryMerged(ConvGeometry g) {
    for (int64_t phases = g.problem.insert[1]; phases > 1; phases /= 2) {
      g.column_phases = static_cast<int>(phases);
      if (CanMergePhases(g)) TryRows(g);
      if (phases % 2 != 0) break;
    }
    g.column_phases = static_cast<int>(g.problem.insert[1]);
    g.merges_rows = true;
    if (CanMergeRows(g)) TryRows(g);
  }
  static bool NeedsChannelRows(const ConvGeometry& g) {
    return g.takes_lines || g.problem.split_pixels > 0 ||
           g.problem.has_channel_phases();
  }
  void TryRows(const ConvGeometry& g) {
    g.channel_rows ? TryChannelRows(g) : TryPixelRows(g);
  }

  // What divides the distance of tiles side by side: they begin with a whole
  // window, and at an even column, or with a unit of a line.
  int64_t StepsOf(const ConvGeometry& g) const {
    if (g.takes_lines) return 8;
    const bool are_even = g.takes_pairs || g.MayRoundSums(demands_);
    return std::lcm(demands_.windows.stride[1], int64_t{are_even ? 2 : 1});
  }
  // Of tiles that cover an image.
  int64_t MostRows(const ConvGeometry& g) const {
    return RoundUp(g.extent(0), demands_.windows.stride[0]) +
           demands_.windows.overlap(0);
  }

  // Into how many a row is cut next: 1 to 8, 12, 16, 24, 32, 48 and so on.
  static int64_t CutFiner(int64_t across) {
    if (across < 8) return across + 1;
    return across % 3 == 0 ? across / 3 * 4 : across / 2 * 3;
  }

  // Widths of tiles that share a row of the output equally. Rows are cut into
  // more than twelve only where that many would still be wide.
  std::vector<int> TileWidths(const ConvGeometry& g) const {
    const int64_t width = g.extent(1);
    // As many sums as a tile of both phases has.
    const int64_t wide = kWideTile / std::max<int64_t>(g.tile_phases() / 2, 1);
    std::vector<int> widths;
    for (int64_t across = 1; across <= width; across = CutFiner(across)) {
      if (!g.takes_lines && (across == 5 || across == 7)) continue;
      if (across > 12 && widths.back() < wide) break;
      const int64_t each = RoundUp(CeilDiv(width, across), StepsOf(g));
      const int tile_w = static_cast<int>((across == 1 ? width : each) +
                                          demands_.windows.overlap(1));
      if (tile_w < 8 && across > 1) break;
      if (widths.empty() || widths.back() != tile_w) widths.push_back(tile_w);
    }
    return widths;
  }

  void TryPixelRows(ConvGeometry g) {
    const int64_t fragments = CeilDiv(g.problem.group_outputs(), 8);
    const int64_t most = CeilDiv(fragments, g.groups_n);
    for (const int64_t tiles_n : {most, int64_t{16}, int64_t{12}, int64_t{8},
                                  int64_t{4}, int64_t{2}, int64_t{1}}) {
      if (tiles_n > most || tiles_n * 8 > kMaxColumns) continue;
      if (demands_.all_channels_in_a_block && tiles_n < most) break;
      g.tiles_n = static_cast<int>(tiles_n);
      for (const int tiles_m : {1, 2, 3}) {
        g.tiles_m = static_cast<int>(tiles_m * g.tile_phases());
        if (CanHaveRowsOfEight(g)) TryEightsOfPixels(g);
        for (const int tile_w : TileWidths(g)) {
          TryRunOfRows(g, tile_w);
          TryRowsApart(g, tile_w);
        }
      }
    }
  }

  void TryRunOfRows(ConvGeometry g, int tile_w) {
    g.tile_w = tile_w;
    g.pitch = PitchOf(g);
    TryRowsThatFit(g);
    TryImages(g, g.extent(0));
  }
  static int PitchOf(const ConvGeometry& g) {
    const int64_t needed = g.lead() + g.tile_w + g.halo(1);
    return static_cast<int>(RoundUp(needed, g.takes_pairs ? 2 : 1));
  }
  void TryRowsThatFit(ConvGeometry g) {
    if (g.tile_w > g.rows()) return;
    const int64_t rows = (g.rows() - g.tile_w) / g.run_pitch() + 1;
    g.tile_h = static_cast<int>(
        demands_.windows.Whole(0, std::min(rows, MostRows(g))));
    if (g.tile_h > 0) TryDepths(g);
  }

  // Each row of the tile is a product's rows, where those are fewer than the
  // patch has positions. Tiles begin with a sector of results.
  void TryRowsApart(ConvGeometry g, int tile_w) {
    g.tile_w = tile_w;
    g.pitch = PitchOf(g);
    g.run_columns = kRowsOfGroup;
    const bool saves = tile_w <= kRowsOfGroup && kRowsOfGroup < g.pitch;
    if (saves && g.step(1) % kPixelsOfSector == 0) TryRowsThatFit(g);
  }

  // Eight rows of the tile, of eight pixels each, are those of a product.
  void TryEightsOfPixels(ConvGeometry g) {
    g.tile_w = 8;
    g.pitch = PitchOf(g);
    g.run_columns = 8;
    TryRowsThatFit(g);
  }

  // An image for each warpgroup of rows: they read the same weights, and more
  // channels at a time.
  void TryImages(ConvGeometry g, int64_t height) {
    const ConvProblem& p = g.problem;
    const bool are_pixels_apart = !demands_.all_channels_in_a_block &&
                                  !demands_.reduces_images &&
                                  !demands_.windows.any();
    if (g.groups_m == 1 || g.tiles_m > 1 || !are_pixels_apart) return;
    if (g.phases(0) * g.phases(1) > 1 || g.pairs_columns) return;
    if (p.output[0] % g.groups_m != 0) return;
    if (g.tile_w != p.output[3] || height > kRowsOfGroup) return;
    if ((height - 1) * g.pitch + g.tile_w > kRowsOfGroup) return;
    g.images = g.groups_m;
    g.tile_h = static_cast<int>(height);
    TryDepths(g);
  }

  // Of a warpgroup's product, where channels are its rows.
  int MostColumns(const ConvGeometry& g) const {
    if (g.takes_lines || g.MayRoundSums(demands_)) return kMaxColumns;
    if (!demands_.needs_planes() || demands_.holds_images) return kMaxColumns;
    return demands_.pools_in_a_loop() ? kMaxColumnsOfWindows
                                      : kMaxColumnsOfPlanes;
  }

  // Runs are rows of eight pixels, or whole ones of the patch of a multiple of
  // eight positions, so that places in them are known when the kernel is
  // compiled.
  void TryChannelRows(ConvGeometry g) {
    g.tiles_m = static_cast<int>(g.tile_phases());
    if (g.block_channels() >= g.problem.group_outputs() + 64) return;
    if (demands_.all_channels_in_a_block &&
        (g.groups_m > 1 || g.interleaves || g.resident_blocks > 1)) {
      return;
    }
    if (CanHaveRowsOfEight(g)) TryRowsOfEight(g);
    for (const int tile_w : TileWidths(g)) {
      const int64_t beside = g.lead() + g.halo(1);
      g.pitch = static_cast<int>(RoundUp(tile_w + beside, 8));
      const int64_t overlap = demands_.windows.overlap(1);
      const bool is_alone = tile_w >= g.extent(1) + overlap;
      const int64_t widest =
          (g.pitch - beside - overlap) / StepsOf(g) * StepsOf(g) + overlap;
      g.tile_w = is_alone ? tile_w : static_cast<int>(widest);
      TryNumbersOfRows(g);
    }
  }

  // With all numbers of rows for which a product has columns.
  void TryNumbersOfRows(ConvGeometry g) {
    const int64_t most_of_planes = MostColumns(g);
    const int64_t most =
        g.CanStoreSums(demands_) ? kMaxColumns : most_of_planes;
    for (int64_t rows = demands_.windows.size[0]; rows * g.run_pitch() <= most;
         rows += demands_.windows.stride[0]) {
      if (rows > MostRows(g)) break;
      g.tiles_n = static_cast<int>(rows * g.run_pitch() / 8);
      // Each part begins with a line.
      if (g.takes_lines && g.groups_n > 1 && g.tiles_n % 8 != 0) continue;
      g.tile_h = static_cast<int>(rows + (g.groups_n - 1) * g.part_step());
      g.stores_sums = g.CanStoreSums(demands_);
      if (g.stores_sums && !demands_.leaves_lines) TryDepths(g);
      g.stores_sums = false;
      const bool is_of_registers = g.merges_rows || g.phases(1) > 2;
      if (g.tiles_n * 8 > most_of_planes) continue;
      if (g.merges_phases() && is_of_registers) continue;
      g.rounds_sums = g.CanRoundSums(demands_);
      g.reads_beside = g.rounds_sums && demands_.reads > 0;
      if (g.problem.has_channel_phases()) continue;
      // No other tail knows where images lie that are split, nor lines.
      const bool is_needed =
          g.problem.split_pixels > 0 || demands_.leaves_lines;
      if (is_needed && !g.rounds_sums) continue;
      TryDepths(g);
      if (g.rounds_sums) continue;
      g.reads_beside = g.CanReadBeside(demands_);
      if (g.reads_beside) TryDepths(g);
    }
  }

  // Not where images are held, beside which memory has no time for short
  // accesses.
  bool CanHaveRowsOfEight(const ConvGeometry& g) const {
    if (demands_.windows.any() || demands_.holds_images || g.takes_lines) {
      return false;
    }
    const int64_t whole = RoundUp(g.lead() + g.extent(1) + g.halo(1), 8);
    const int64_t saved = whole - RoundUp(g.extent(1), 8);
    return static_cast<double>(saved) >=
           kLeastSaved * static_cast<double>(whole);
  }
  void TryRowsOfEight(ConvGeometry g) {
    g.run_columns = 8;
    g.tile_w = 8;
    g.pitch = PitchOf(g);
    TryNumbersOfRows(g);
  }

  void TryDepths(ConvGeometry g) {
    const int64_t inputs = g.problem.group_inputs();
    int before = 0;
    for (const int chunk : {8, 16, 32, 64, 128}) {
      if (chunk > 8 && before >= inputs) break;
      if (chunk > MostOfChunk(g)) break;
      // Of the last chunk no more than there is.
      g.chunk = static_cast<int>(std::min(RoundUp(inputs, 8), int64_t{chunk}));
      if (ProductsOf(g) > kMaxProductsOfSixteen) break;
      if (!HalvesFollow(g) || !HasTapsOfPhases(g)) {
        if (chunk > 8 || !CanHaveEmptyHalves(g)) continue;
        g.chunk = 16;
      }
      before = chunk;
      if (g.takes_lines && g.octets_of_row() != 2) continue;
      if (HasTooManyProducts(g)) break;
      for (const int blocks : {1, 2, 4, 8}) {
        g.sum_blocks = blocks;
        // If two blocks cannot, more can neither.
        if (blocks > 1 && !CanShareSums(g)) break;
        TryChunk(g);
      }
    }
  }

  // Where phases are channels, operands as they are stored wait for chunks that
  // leave room for two stages (1.1 to 1.2 times as long, of six plans on an
  // H200).
  static int MostOfChunk(const ConvGeometry& g) {
    const ConvProblem& p = g.problem;
    return p.has_channel_phases() && p.takes_as_stored() ? 64 : 128;
  }

  // A product takes channels of one tap, which its phase may lack.
  static bool HasTapsOfPhases(const ConvGeometry& g) {
    return !g.has_uneven_phases() || g.octets_of_row() == 2;
  }

  // Where there are eight channels in all: of a large filter, or of phases,
  // twice the products take less time than warps do. Of operands that are
  // multiplied as they are stored any filter's do, for warps convert them.
  static bool CanHaveEmptyHalves(const ConvGeometry& g) {
    constexpr int64_t kFewestTaps = 25;
    return g.problem.group_inputs() <= 8 && g.octet_columns == 1 &&
           (g.problem.takes_as_stored() || g.has_uneven_phases() ||
            g.problem.taps() >= kFewestTaps);
  }

  // Of a chunk, by a warpgroup.
  static int64_t ProductsOf(const ConvGeometry& g) {
    return g.steps() * g.tiles_m * g.products();
  }

  // With a stride, eight channels of a large filter may be none that follow
  // each other (HalvesFollow), so sixteen are the fewest.
  static bool HasTooManyProducts(const ConvGeometry& g) {
    const int64_t products = ProductsOf(g);
    if (products <= kMaxProducts) return false;
    if (products > kMaxProductsOfSixteen || g.chunk != 16) return true;
    ConvGeometry of_eight = g;
    of_eight.chunk = 8;
    return HalvesFollow(of_eight);
  }

  // Numbers of 32 bits, each of which is needed once. What is copied at once
  // lies in one row. Blocks that hold images took 1.02 to 1.28 times as long
  // (nine tiles of two plans on an H200), and so did phases of `fp32` or of
  // three chunks or more (26 plans there). Not in an attempt behind one that
  // lacked registers.
  static bool CanCopyAhead(const ConvGeometry& g) {
    constexpr int64_t kPixels = 4;
    constexpr int64_t kMostChunksOfPhase = 2;
    const ConvProblem& p = g.problem;
    if (p.has_insert() &&
        (g.input_parts() > 1 || g.chunks() > kMostChunksOfPhase)) {
      return false;
    }
    const bool has_fours = p.input[3] % kPixels == 0 &&
                           g.padding(1) % kPixels == 0 &&
                           g.step(1) % kPixels == 0 && g.pitch % kPixels == 0;
    return has_fours && p.input_type == DataType::kF32 && p.has_one_tap() &&
           g.octet_columns == 1 && g.images == 1 && !p.wraps_rows &&
           !g.lays_lines && !g.holds_images() && !g.spares_registers;
  }

  void TryChunk(ConvGeometry g) {
    TryWeights(g);
    if (!CanCopyAhead(g)) return;
    g.batches_ahead = kBatchesAhead;
    TryWeights(g);
  }

  // Kept for all tiles, or brought for each.
  void TryWeights(ConvGeometry g) {
    if (!GroupSumsFit(tiles_, g)) return tiles_.Refuse(g);
    for (const bool keeps : {true, false}) {
      g.keeps_weights = keeps;
      if (TryStages(g) && g.chunks() == 1) break;
    }
  }

  // Blocks of a cluster may, while all of them are on the device at once. A
  // cluster lies in one part of the device: of four or eight, blocks found room
  // on 120 of an H100's 132 multiprocessors. Other chips have other parts, so
  // there is a margin.
  bool CanShareSums(const ConvGeometry& g) const {
    if (demands_.holds_images || g.images > 1) return false;
    if (g.all_chunks() % g.sum_blocks != 0) return false;
    const int64_t all = tiles_.sm_count();
    const int64_t usable = g.sum_blocks > 2 ? all * 6 / 7 : all;
    return g.blocks() <= usable * g.resident_blocks;
  }

  // A matrix's second half lies behind its first.
  static bool HalvesFollow(const ConvGeometry& g) {
    if (g.octets_of_row() == 2 || !g.problem.has_stride()) return true;
    for (int64_t step = 0; step < g.steps(); ++step) {
      if (g.has_empty_half() && step == g.steps() - 1) break;
      if (g.OffsetOf(2 * step + 1) <= g.OffsetOf(2 * step)) return false;
    }
    return true;
  }

  // With as many stages as fit; whether any do.
  bool TryStages(ConvGeometry g) {
    for (g.stages = MostStages(g); g.stages >= 2; --g.stages) {
      if (g.stages % g.chunk_producers() != 0) continue;
      if (WaitsForLines(g)) return false;
      if (!HasRoomForSums(g, g.stages)) return false;
      if (tiles_.Offer(g)) return true;
    }
    return false;
  }

  // Of chunks as long as two stages have room for, one is brought only while
  // another is multiplied, which takes less; shorter ones have more stages.
  static bool WaitsForLines(const ConvGeometry& g) {
    constexpr int kShortChunk = 32;
    return g.lays_lines && g.stages == 2 && g.chunk > kShortChunk &&
           g.chunks() > 1;
  }

  // As many as there is room for, and two at least. One fewer for each producer
  // where that leaves the L1 more: if it had little, but for lines, which do
  // not come by way of it, and blocks that hold images; and always of four
  // stages that one producer scales. Blocks that share sums need room for
  // these.
  int MostStages(ConvGeometry g) const {
    constexpr int kFewest = 2;
    const int step = g.chunk_producers();
    g.stages = kFewest;
    const int64_t least = SharedBytes(g, demands_);
    const int64_t each = g.resident_blocks * g.stage_bytes();
    const auto bytes_of = [&](int stages) {
      return least + (stages - kFewest) * each;
    };
    int most = kMaxStages / step * step;
    while (most - step >= kFewest && bytes_of(most) > tiles_.most_shared()) {
      most -= step;
    }
    const bool is_scaled_by_one =
        step == 1 && most == kMaxStages && !g.brings_halves();
    const bool waits = !demands_.holds_images && LeavesLittleL1(bytes_of(most));
    const int fewer = most - step;
    const bool may_be_fewer = fewer >= kFewest && !g.takes_lines &&
                              !g.turns_lines && HasRoomForSums(g, fewer);
    return (is_scaled_by_one || waits) && may_be_fewer &&
                   ShareOfShared(bytes_of(fewer)) <
                       ShareOfShared(bytes_of(most))
               ? fewer
               : most;
  }

  // Where blocks share them.
  static bool HasRoomForSums(ConvGeometry g, int stages) {
    g.stages = stages;
    return g.sum_blocks == 1 || g.sum_bytes() <= g.ring_bytes();
  }

  ConvTiles& tiles_;
  const ConvDemands& demands_;
};

}  // namespace

void OfferGroupTiles(ConvTiles* tiles) { GroupTiles(tiles).Run(); }

}  // namespace kiln
