// Longer than 400 lines because one struct answers for all of a tile's numbers.
#ifndef KILN_JIT_COMPILE_CONV_GEOMETRY_H_
#define KILN_JIT_COMPILE_CONV_GEOMETRY_H_

#include <cstdint>
#include <optional>

#include "jit/artifact/artifact.h"
#include "jit/compile/conv_problem.h"
#include "jit/compile/conv_windows.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

inline constexpr int64_t kPixelsOfSector = 8;  // of f32, in memory

// How packed weights lie: kernels that have them alike may read the same.
struct ConvPacking {
  bool of_groups = false;  // as warpgroups multiply them
  bool of_lines = false;   // by input that was laid down
  int chunk = 0;           // channels of the input
  int64_t channels = 0;    // of the result, of a block
  int row_parts = 1;       // of the filter
  int64_t joined = 1;      // groups
  Pair channel_phases = {1, 1};
  friend bool operator==(const ConvPacking&, const ConvPacking&) = default;
};

// What the kernels that compute one convolution ask of its tiles.
struct ConvDemands {
  bool all_channels_in_a_block = false;
  // How weights lie, as another kernel has them, unless others are worth a
  // packing of their own; null: as they like.
  std::optional<ConvPacking> packing;
  ConvWindows windows;  // of which tiles consist
  // What happens to each element before statistics, a pooling or a reduction or
  // to the end: pointwise ops, an estimate of their instructions, whole tensors
  // that they read, and whether a tensor of the same size is written.
  int64_t ops = 0;
  int64_t instructions = 0;
  int64_t reads = 0;
  // Whether each of these is as large as what is computed, and the last op's
  // result all that is left of it; words of two neighbours of all of these.
  bool may_read_ahead = false;
  int64_t pair_words = 0;
  bool stores = false;
  DataType stored_type = DataType::kF32;  // of that tensor
  // Whether one tensor of 16 bits is all that is made of the elements, by ops
  // that read at most one like it.
  bool leaves_halves = false;
  // Whether that tensor is lines for the next convolution (lay_results.h).
  bool leaves_lines = false;
  // Whether one value is all that is left of the elements, or what statistics
  // are taken of and all that is stored, by ops that read nothing else that is
  // as large.
  bool leaves_one_value = false;
  bool has_statistics = false;
  bool reduces_images = false;  // each channel's
  bool has_softmax = false;     // over channels; the results are written
  // Blocks keep what statistics are taken of, until they have these, and write
  // what is made of both (conv_held.cuh).
  bool holds_images = false;
  int64_t held_channel_bytes = 0;  // of what a channel's results have in common
  // Channels of a normalised group, of which tiles of warps have all or a part
  // of one; 0: no such group.
  int64_t group_channels = 0;

  // Where channels are the rows of warpgroups' products: whether statistics or
  // reductions are taken from registers (conv_runs.cuh, conv_image_runs.cuh,
  // conv_channel_runs.cuh), and whether planes are needed.
  bool in_registers() const {
    const bool reduces_channels = all_channels_in_a_block && !has_softmax;
    return (has_statistics || reduces_images || reduces_channels) && reads == 0;
  }
  // Whether windows are pooled by a loop of their own. Beside statistics, those
  // that tiles are not laid out by are pooled from registers, or were when the
  // cost model was fitted.
  bool pools_in_a_loop() const {
    return windows.any() && (!has_statistics || windows.lay_out_tiles());
  }
  bool needs_planes() const {
    return !in_registers() || stores || holds_images;
  }
  friend bool operator==(const ConvDemands&, const ConvDemands&) = default;
};

// How warps that turn lines share a chunk (conv_turned_lines.cuh): matrices of
// a row of the patch, sets of warps that have octets of their own, what a warp
// has of an octet at once, in eights of matrices, and how often, and how much
// of the same is on its way.
struct TurningShare {
  int64_t across = 1;
  int64_t sets = 1;
  int64_t at_once = 1;
  int64_t batches = 1;
  int64_t ahead = 1;
};

// Numbers of extents `dims` as halves of so many parts, and a factor for each
// pixel: laid_lines.cuh.
struct LaidLines {
  Dims4 dims;
  int parts = 1;

  int64_t pitch() const;     // from a row to the next
  int64_t pixels() const;    // with those that only fill rows up
  int64_t elements() const;  // halves
  int64_t bytes() const;     // with the factors, which lie behind them
  // The same, and the scales of results, and what tiles read past the last
  // image.
  int64_t ReservedBytes() const;
};

// How blocks and warps share a convolution; names and meaning are those of
// conv_tile.cuh, conv_patch.cuh and conv_stages.cuh.
struct ConvGeometry {
  // Of the next image's tiles, those that are computed before what is held of
  // this image's windows is finished.
  static constexpr int64_t kHeldLag = 1;

  ConvProblem problem;
  ConvWindows windows;
  int tile_h = 8;
  int tile_w = 32;
  int tiles_m = 2;
  int tiles_n = 8;
  int chunk = 8;
  int tiles_per_block = 1;
  bool splits_input = false;
  bool splits_weight = false;
  int resident_blocks = 2;  // of a multiprocessor

  // Where warps multiply (conv_mma.cu).
  int warps_m = 8;
  int warps_n = 1;
  bool copies_four = false;  // columns of the input at once

  // Where warpgroups do (conv_wgmma.cu); 0: warps do.
  int groups_m = 0;
  int groups_n = 0;
  // The problem's, which the search asks for often.
  int64_t octet_columns = 1;
  bool pairs_columns = false;
  int images = 1;  // of a block; several: each has a warpgroup's rows
  // Parts of a filter's rows: chunks have channels of one of them
  // (conv_tile.cuh).
  int row_parts = 1;
  // Blocks of a cluster that share the chunks of a tile
  // (conv_cluster_sums.cuh).
  int sum_blocks = 1;
  // Whether a dilated filter's rows make phases of the image: those rows whose
  // numbers have the same remainder modulo the dilation, and in which the
  // filter's rows are neighbours.
  bool interleaves = false;
  // Whether producers take two neighbouring pixels at once: the operands are
  // multiplied as they are stored, and patches begin at even columns, of rows
  // of an even width.
  bool takes_pairs = false;
  // Whether they take eight of a channel at once, as they lie: of a filter of
  // one tap, where channels are the rows of the product (conv_lines.cuh).
  bool takes_lines = false;
  // Such lines of halves are laid down before, scaled (lay_lines.cu): of
  // operands that are not multiplied as they are stored.
  bool lays_lines = false;
  // Whether they take eight of a channel at once and turn them
  // (conv_turned_lines.cuh).
  bool turns_lines = false;
  // Ops read what they need beside the sums ahead (conv_beside.cuh).
  bool reads_beside = false;
  // Results of 16 bits are rounded in registers (conv_rounded.cuh), which then
  // reads what ops need beside the sums itself.
  bool rounds_sums = false;
  // Parts that results are laid down in, for the next convolution
  // (lay_results.h); 0: they are not.
  int result_parts = 0;
  // Elements are stored from registers (conv_run_stores.cuh).
  bool stores_sums = false;
  bool channel_rows = false;  // of the product, instead of pixels
  // Of the columns of a transposed convolution, phases side by side that a tile
  // has; whether it then has both phases of its rows, too. They count in
  // tiles_m.
  int column_phases = 1;
  bool merges_rows = false;
  int pitch = 0;  // of the patch's rows
  // What products have of each of a tile's rows: 0: all that the patch has,
  // halo included. Otherwise nothing of the halo: 8 pixels, for eights of a
  // matrix may lie a `pitch` apart, or, where pixels are rows, the 64 that one
  // product has of them.
  int run_columns = 0;
  int producers = 1;  // warpgroups that bring the input
  int stages = 2;
  // Batches that producers have on their way to shared memory, behind their
  // backs (conv_copies.cuh).
  int batches_ahead = 0;
  bool keeps_weights = false;     // of all chunks in shared memory
  bool spares_registers = false;  // of producers, at the cost of time
  // Where blocks hold images: teams, of which each has the blocks of an image.
  int teams = 0;
  // Where other blocks compute several images: every so many-th; 0: one each.
  int image_step = 0;
  // The same of columns of tiles, of all images (conv_tile.cuh).
  bool walks_columns = false;
  // They may not be resident together, so their launches take turns.
  bool in_turns = false;

  int groups() const { return groups_m * groups_n; }
  bool has_groups() const { return groups() > 0; }
  int input_parts() const { return splits_input ? 2 : 1; }
  int weight_parts() const { return splits_weight ? 2 : 1; }
  // Pairs of parts that are multiplied: all but that of both small ones.
  int products() const { return input_parts() + weight_parts() - 1; }
  bool is_bfloat16() const {
    return problem.takes_as_stored() && problem.input_type == DataType::kBF16;
  }

  // Whether producers find halves in memory.
  bool brings_halves() const { return lays_lines || problem.takes_as_stored(); }
  // From a row of the input to the next, as lines are taken.
  int64_t line_pitch() const;
  // What of the input is laid down, and of the results.
  LaidLines laid_lines() const;
  LaidLines laid_results() const;

  int64_t interleave() const { return interleaves ? problem.dilation[0] : 1; }
  int64_t phases(size_t axis) const;         // of the output
  int64_t weight_phases(size_t axis) const;  // of these, with weights of theirs
  int64_t tile_phases() const;               // of a tile
  bool merges_phases() const { return column_phases > 1; }
  // The part of taps(axis) that a phase has, in the mean.
  double present_taps(size_t axis) const;
  // Where tiles have several phases: by how many columns of the patch the first
  // begins before the last.
  int64_t phase_shift() const;
  // Between the filter's taps, in pixels of a phase.
  int64_t dilation(size_t axis) const;
  // Whether some phases have a tap less than others.
  bool has_uneven_phases(size_t axis) const;
  bool has_uneven_phases() const {
    return has_uneven_phases(0) || has_uneven_phases(1);
  }
  // Of a phase, and of a part of the filter; across, those that have an octet
  // to begin with.
  int64_t taps(size_t axis) const;
  int64_t ColumnOfTap(int64_t x) const;  // where its octet begins
  int64_t reach(size_t axis) const;  // of the last tap, in pixels of the input
  int64_t halo(size_t axis) const;   // pixels of the patch beyond the tile's
  int64_t block_channels() const;
  int64_t channel_blocks() const;  // of one group
  int64_t all_chunks() const;
  int64_t chunks() const;  // that a block goes through
  int64_t steps() const;   // through the depth of one chunk, of 8 or 16
  // Pixels of a phase that tiles are laid over, and how many lie between the
  // first of one tile and the first of the next.
  int64_t extent(size_t axis) const;
  int64_t step(size_t axis) const;
  // Columns of a product for each row of the tile, halo included or not; where
  // pixels are its rows, rows.
  int64_t run_pitch() const { return run_columns == 0 ? pitch : run_columns; }
  bool rows_of_eight() const { return run_columns == 8; }
  // From the first position of what a product has to one behind the `count`-th.
  int64_t PositionsOfRun(int64_t count) const;
  // Where channels are the rows of products, each run of pixels is a part of
  // the tile's rows: how many of these, and from each part to the next.
  int64_t parts() const { return channel_rows ? groups_n : 1; }
  int64_t part_rows() const;
  int64_t part_step() const;
  int64_t tiles_across() const;
  int64_t strips() const;
  int64_t blocks_of_channels() const;  // those of one image that share them
  int64_t blocks_of_image() const;     // or of several that share blocks
  int64_t blocks() const;              // of the grid
  bool holds_images() const { return teams > 0; }
  // What is held of them are windows (conv_held_windows.cuh).
  bool holds_windows() const { return holds_images() && windows.any(); }
  int64_t rounds() const;  // images of a team, or of a block, or columns
  // Of the device, by blocks that wait for each other.
  Requirements requirements(int64_t dynamic_shared_bytes) const;
  int64_t threads() const;  // of a block
  // Of all that threads of warpgroups sum, and a factor for each thread.
  int64_t sum_bytes() const;
  int64_t packed_bytes() const;  // of all weights
  // Of a stage of warpgroups with its barriers and its note; and of what all
  // stages bring, without these.
  int64_t stage_bytes() const;
  int64_t ring_bytes() const;
  int64_t shared_bytes() const;  // without what the tail needs
  // Blocks that leave partial statistics of the same group, for groups of
  // `group_channels`.
  int64_t Splits(int64_t group_channels) const;
  // Blocks side by side that have channels of the same group, at most; and
  // groups that a block has channels of, at most (conv_block_states.cuh). There
  // are groups: group_channels > 0.
  int64_t PartsOfState(int64_t group_channels) const;
  int64_t StatesOfBlock(int64_t group_channels) const;

  // From the first pixel of the input that the first tile needs to the first
  // that there is; of the first phase.
  int64_t padding(size_t axis) const;
  // Columns that a patch begins early, so that four of them are copied at once,
  // by warps, or two.
  int64_t lead() const;
  // Of warps.
  int64_t patch_width() const;
  int64_t patch() const;  // its pixels
  // Of the product, of all images and one phase of those of a tile; of these,
  // warps that have them.
  int64_t rows() const;
  int64_t row_warps() const;
  int64_t patch_words() const;   // of one chunk
  int64_t weight_words() const;  // of one chunk for one block of channels

  // Of warpgroups. Units have 16 bytes: eight numbers of a pixel or channel.
  int64_t phase_start(size_t axis) const;  // see PatchPositions
  int64_t planes(size_t axis) const;       // residues of a stride
  int64_t plane_height() const;
  // Positions of the patch that producers bring, or pairs of columns.
  int64_t brought() const;
  // Of a chunk, for a whole patch; of two positions, where these are taken
  // together.
  int64_t octets() const;
  // Rows of each plane that a tile takes from the one above in shared memory.
  int64_t carried_rows() const;
  int64_t carried_positions() const;  // the same of the patch
  int64_t run() const;                // positions that a block multiplies
  int64_t run_span() const;   // from the first of an image behind its last
  int64_t positions() const;  // of the patch that products read
  int64_t image_positions() const;  // of those, one image's
  // Octets of a position that lie together, swizzled if more than one.
  int64_t octets_of_row() const { return chunk % 16 == 0 ? 2 : 1; }
  // Units from the start of the patch to those that pair `eight` of octet and
  // tap multiplies, octet by octet; where octets lie together, tap by tap, to
  // those of the first of them.
  int64_t OffsetOf(int64_t eight) const;
  int64_t TapOffset(int64_t tap) const;  // the same of a tap's first octet
  bool has_empty_half() const;           // of the last step
  // Calls of the generated products (warpgroup_text.h) that multiply a pair of
  // parts: one for each sixteen channels where those are enough for a turn of a
  // loop, else one. And whether a loop makes the calls: products are what
  // compiling takes most time for.
  int64_t product_calls() const;
  bool loops_products() const;
  // Parts of a chunk whose sums leave the tensor cores, which round towards
  // zero as they add: runs of calls, or of the steps of the only one.
  int64_t chains() const;
  int64_t zero_units() const;   // that it multiplies
  int64_t scale_units() const;  // of sums' scales, by channel
  int64_t pixel_units() const;  // of a stage
  int64_t stage_units() const;
  // Where lines are turned: how warps share a chunk, and all their places.
  TurningShare turning() const;
  int64_t place_units() const;
  int64_t copy_units() const;  // where batches are copied ahead
  int64_t weight_units() const;
  int64_t scale_count() const;  // of output channels, padding included
  // Registers of a thread: of the launch, and after the producer has given its
  // own back (0: it does not).
  int64_t launch_registers() const;
  int64_t LeftForConsumers(int64_t of_producer) const;
  int64_t producer_registers() const;
  int64_t consumer_registers() const;
  // Whether producers gain by more on its way: of one part, chunk after chunk.
  bool takes_eight_octets() const;
  int octets_at_once() const;  // that a producer's thread has in registers
  // Whether all producers share each chunk instead of taking them in turn: the
  // others wait for it, or it has more octets than the threads of one have at
  // once. Not where they copy ahead, for then all would read, convert and store
  // at the same time: 26 plans took 1.01 times as long on an H200, some 1.16.
  bool shares_chunks() const;
  int chunk_producers() const { return shares_chunks() ? 1 : producers; }
  // Of what follows where channels are rows: a plane's words, the bytes of all
  // planes, or of rows of rounded results, and of the states of channels and of
  // their sums in a tile, or of the states in two images. The latter are those
  // of statistics; reductions over images need less.
  int64_t plane_pitch() const;
  int64_t plane_bytes() const;
  int64_t state_bytes() const;
  // Of a held tile: all its planes, what each warp's channels have in common,
  // of `channel_bytes`, and merged states of `group_channels` each.
  int64_t HeldBytes(int64_t channel_bytes, int64_t group_channels) const;
  // Of a tile's windows as conv_window_rows.cuh keeps them, and the bytes of a
  // strip that is held, with channels of `channel_bytes`.
  int64_t kept_window_words() const;
  int64_t HeldWindowBytes(int64_t channel_bytes) const;
  // Whether channels are reduced from registers; a row that
  // conv_channel_runs.cuh lays down then, and the bytes of all.
  bool reduces_runs(const ConvDemands& demands) const {
    return channel_rows && demands.all_channels_in_a_block;
  }
  int64_t channel_run_pitch() const;
  int64_t channel_run_bytes() const;
  // Tiles of the shortest strip.
  int64_t fewest_tiles() const;
  // Where pixels are the rows: whether results go to memory by way of shared
  // memory (conv_pixel_stage.cuh), and the words that takes.
  bool StagesResults(const ConvDemands& demands) const;
  // Whether neighbours are pairs, so that what ops read may be read ahead
  // (conv_beside.cuh), or results be rounded in registers, or else stored from
  // there, if `demands` lets it.
  bool CanReadBeside(const ConvDemands& demands) const;
  bool CanRoundSums(const ConvDemands& demands) const;
  // Whether tiles with an even number of columns can, before those are known.
  bool MayRoundSums(const ConvDemands& demands) const;
  bool CanStoreSums(const ConvDemands& demands) const;
  // Of a warp's channels, what is on its way at once.
  static int64_t ChannelsAhead(const ConvDemands& demands) {
    return demands.pair_words > 1 ? 4 : 8;
  }
  // Where phases are channels: whether two neighbours are stored at once
  // (conv_phase_stores.cuh).
  bool stores_phase_pairs() const;
  // Of two phases, whether two pixels' are four numbers that are not aligned.
  bool parts_phase_fours() const;
  // What waits for ops, and is on its way.
  int64_t BesideRegisters(const ConvDemands& demands) const;
  int64_t StagedWords(const ConvDemands& demands) const;
  // Where pixels are the rows: fragments of a warp's channels whose windows are
  // gathered at once (conv_windows.cuh), and the words that takes.
  int64_t PooledFragments() const;
  int64_t WindowWords() const;
  // Words of warps that have channels of the same pixels (conv_softmax.cuh).
  int64_t softmax_words() const;
  ConvPacking packing() const;
  // Whether both read input that was laid down alike.
  bool LaysLike(const ConvGeometry& other) const;
  // Whether sums of a chunk are added to the others outside the tensor cores.
  bool sums_chunks() const {
    return (splits_input || splits_weight) && (chunks() > 1 || chains() > 1);
  }
  // Whether the other differs at most in how many tiles blocks have, in what
  // producers leave free or copy ahead, and in what stages there are of: sums
  // take as many registers.
  bool IsTileOf(ConvGeometry other) const;
  friend bool operator==(const ConvGeometry&, const ConvGeometry&) = default;

 private:
  // Where channels are rows: whether two neighbours lie in one row of a tile.
  bool HasPairs() const;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_GEOMETRY_H_
