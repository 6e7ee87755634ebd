// Longer than 400 lines because one class answers for all of a tile's numbers.
#include "jit/compile/conv_geometry.h"

#include <algorithm>
#include <cstdlib>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Of a block; of two, the second saves less than the first one takes longer.
constexpr int kTilesToCarry = 3;
constexpr int64_t kStagedFragments = 4;  // of conv_pixel_stage.cuh
// Of both places of conv_windows.cuh, at most: 64 KB; of warps 32 KB, since
// many of their devices have little shared memory.
constexpr int64_t kMostWindowWords = 16384;
constexpr int64_t kMostWindowWordsOfWarps = 8192;

// Whether the tensor cores are busy with so many products, of half a cycle for
// each column, while a loop prepares the next: some 20 instructions for a turn
// and 5 for each product, with latencies 60 to 120 cycles.
bool HidesTurn(const ConvGeometry& g, int64_t count) {
  constexpr int64_t kCycles = 192;
  return count * g.tiles_n * 8 / 2 >= kCycles;
}

// What tensor cores add one behind the other, of operands in two parts: each
// step puts sums off by some 2e-8 of them. PyTorch's are off by 1.0e-7 and more
// of a transposed convolution, by 1.5e-7 of others (63 and 99, on an H200).
int64_t MostStepsOfChain(const ConvProblem& problem) {
  constexpr int64_t kMost = 18;  // 3 x 3 taps of 32 channels
  constexpr int64_t kMostOfTransposed = 14;
  return problem.transposed ? kMostOfTransposed : kMost;
}

// Of pixels that lie together in lines (conv_lines.cuh), and the units of eight
// channels of them.
constexpr int64_t kPixelsOfLine = 64;
constexpr int64_t kUnitsOfLines = 64;

// Of one fragment of each warp's channels, as conv_windows.cuh lays them down.
int64_t WordsOfFragment(const ConvGeometry& g) {
  const int64_t pixels = g.tile_h * RoundUp(g.tile_w, 4);
  const int64_t sharing = g.has_groups() ? g.groups_n : g.warps_n;
  return sharing * 8 * (RoundUp(pixels - 4, 32) + 4);
}

// Of a chunk, that a producer's thread brings, at most, where so many positions
// are brought (patch_share.cuh).
int64_t OctetsOfThread(const ConvGeometry& g, int64_t positions) {
  const int64_t threads = g.producers * 128;
  const int64_t runs = RoundUp(positions, 32);
  const int64_t octets = g.chunk / 8;
  if (runs > threads) return CeilDiv(positions, threads) * octets;
  return CeilDiv(octets, threads / runs);
}

}  // namespace

int64_t LaidLines::pitch() const { return RoundUp(dims[3], 8); }
int64_t LaidLines::pixels() const { return dims[0] * dims[2] * pitch(); }
int64_t LaidLines::elements() const { return parts * dims[1] * pixels(); }
int64_t LaidLines::bytes() const { return elements() * 2 + pixels() * 4; }
int64_t LaidLines::ReservedBytes() const {
  constexpr int64_t kMostParts = 4;  // of a tile, each of whole rows
  constexpr int64_t kMostRows = 128;
  const int64_t past = std::min(kMostParts * dims[2], kMostRows) * pitch();
  return bytes() + pixels() * 2 + past * 4;
}

int64_t ConvGeometry::line_pitch() const {
  return lays_lines ? laid_lines().pitch() : problem.input[3];
}
LaidLines ConvGeometry::laid_lines() const {
  return {problem.input, input_parts()};
}
LaidLines ConvGeometry::laid_results() const {
  return {problem.output, result_parts};
}
int64_t ConvGeometry::phases(size_t axis) const {
  return weight_phases(axis) * (axis == 0 ? interleave() : 1);
}
int64_t ConvGeometry::weight_phases(size_t axis) const {
  return has_groups() ? problem.insert[axis] : 1;
}
int64_t ConvGeometry::tile_phases() const {
  return column_phases * (merges_rows ? phases(0) : 1);
}
double ConvGeometry::present_taps(size_t axis) const {
  if (!has_uneven_phases(axis)) return 1.0;
  const int64_t room = weight_phases(axis) * taps(axis);
  return static_cast<double>(problem.kernel[axis]) / static_cast<double>(room);
}
int64_t ConvGeometry::phase_shift() const {
  const int64_t last = phase_start(1) % column_phases + column_phases - 1;
  return merges_phases() ? last / phases(1) : 0;
}
int64_t ConvGeometry::dilation(size_t axis) const {
  return axis == 0 && interleaves ? 1 : problem.dilation[axis];
}
bool ConvGeometry::has_uneven_phases(size_t axis) const {
  return problem.kernel[axis] % weight_phases(axis) != 0;
}
int64_t ConvGeometry::taps(size_t axis) const {
  const int64_t all = CeilDiv(problem.kernel[axis], weight_phases(axis));
  return CeilDiv(all, axis == 1 ? octet_columns : row_parts);
}
int64_t ConvGeometry::ColumnOfTap(int64_t x) const {
  if (octet_columns == 1) return x;
  if (pairs_columns) return std::max<int64_t>(x * octet_columns - 1, 0);
  return std::min(x * octet_columns, problem.kernel[1] - octet_columns);
}
int64_t ConvGeometry::reach(size_t axis) const {
  const int64_t last = taps(axis) - 1;
  return (axis == 1 ? ColumnOfTap(last) : last) * dilation(axis);
}
int64_t ConvGeometry::halo(size_t axis) const {
  if (!has_groups()) return reach(axis);
  return reach(axis) / problem.stride[axis] + (axis == 1 ? phase_shift() : 0);
}
int64_t ConvGeometry::block_channels() const {
  if (channel_rows) return int64_t{groups_m} * 64;
  return int64_t{has_groups() ? groups_n : warps_n} * tiles_n * 8;
}
int64_t ConvGeometry::channel_blocks() const {
  return CeilDiv(problem.group_outputs(), block_channels());
}
int64_t ConvGeometry::all_chunks() const {
  return CeilDiv(problem.group_inputs(), chunk) * row_parts;
}
int64_t ConvGeometry::chunks() const { return all_chunks() / sum_blocks; }
int64_t ConvGeometry::steps() const {
  const int64_t step = has_groups() ? 16 : 8;
  return CeilDiv(chunk * taps(0) * taps(1), step);
}
int64_t ConvGeometry::extent(size_t axis) const {
  if (windows.lay_out_tiles()) return windows.extent[axis];
  return CeilDiv(problem.output[2 + axis], phases(axis));
}
int64_t ConvGeometry::part_rows() const {
  return channel_rows ? int64_t{tiles_n} * 8 / run_pitch() : tile_h;
}
int64_t ConvGeometry::part_step() const {
  return channel_rows ? part_rows() - windows.overlap(0) : step(0);
}
int64_t ConvGeometry::step(size_t axis) const {
  const int64_t length = axis == 0 ? tile_h : tile_w;
  if (!windows.lay_out_tiles()) return length;
  return windows.Whole(axis, length) - windows.overlap(axis);
}
int64_t ConvGeometry::tiles_across() const {
  return CeilDiv(extent(1), step(1));
}
int64_t ConvGeometry::strips() const {
  return CeilDiv(CeilDiv(extent(0), step(0)), tiles_per_block);
}
int64_t ConvGeometry::fewest_tiles() const {
  return CeilDiv(extent(0), step(0)) - (strips() - 1) * tiles_per_block;
}
int64_t ConvGeometry::blocks_of_channels() const {
  return phases(0) * phases(1) / tile_phases() * strips() * tiles_across();
}
int64_t ConvGeometry::blocks_of_image() const {
  return problem.groups * channel_blocks() * blocks_of_channels();
}
int64_t ConvGeometry::blocks() const {
  if (holds_images()) return teams * blocks_of_image();
  if (walks_columns) return image_step * blocks_of_image() / tiles_across();
  if (image_step > 0) return image_step * blocks_of_image();
  return problem.output[0] / images * blocks_of_image() * sum_blocks;
}
int64_t ConvGeometry::rounds() const {
  const int64_t step = holds_images() ? teams : image_step;
  const int64_t columns = walks_columns ? tiles_across() : 1;
  return step == 0 ? 1 : CeilDiv(problem.output[0] * columns, step);
}
Requirements ConvGeometry::requirements(int64_t dynamic_shared_bytes) const {
  Requirements requires_;
  if (!holds_images() || in_turns) return requires_;
  requires_.min_sm_count = static_cast<int>(blocks());
  requires_.cooperative = true;
  requires_.shared_optin_bytes = dynamic_shared_bytes;
  return requires_;
}
int64_t ConvGeometry::threads() const {
  return has_groups() ? (groups() + producers) * 128 : warps_m * warps_n * 32;
}
int64_t ConvGeometry::sum_bytes() const {
  return int64_t{groups()} * 128 * (tiles_m * tiles_n * 4 + 1) * 4;
}
int64_t ConvGeometry::packed_bytes() const {
  const int64_t count = problem.groups * weight_phases(0) * weight_phases(1) *
                        channel_blocks() * all_chunks();
  return has_groups() ? count * weight_units() * 16 + scale_count() * 4
                      : count * weight_words() * 4;
}
int64_t ConvGeometry::shared_bytes() const {
  if (!has_groups()) {
    return 4 * ((1 + input_parts()) * patch_words() +
                (chunks() > 1 ? 2 : 1) * weight_words() + steps() * 8);
  }
  const int64_t kept =
      keeps_weights ? chunks() * tile_phases() * weight_units() : 0;
  const int64_t zeros = has_empty_half() ? zero_units() : 0;
  const int64_t barriers = 1 + groups() + (holds_images() ? 2 : 0);
  const int64_t others = CeilDiv(barriers, 2) + 2 * images * producers;
  return stages * stage_bytes() + 16 * (kept + zeros + others + scale_units() +
                                        place_units() + copy_units());
}
int64_t ConvGeometry::copy_units() const {
  return int64_t{batches_ahead} * octets_at_once() * producers * 128 * 2;
}
int64_t ConvGeometry::stage_units() const {
  return pixel_units() + (keeps_weights ? 0 : tile_phases() * weight_units());
}
int64_t ConvGeometry::stage_bytes() const {
  const int64_t note = CeilDiv(4 * images + 8, 16);
  return 16 * (stage_units() + 1 + note);
}
int64_t ConvGeometry::ring_bytes() const { return 16 * stages * stage_units(); }
int64_t ConvGeometry::scale_units() const {
  if (channel_rows || problem.takes_as_stored()) return 0;
  return int64_t{groups()} * tiles_n * 8 / 4;
}

int64_t ConvGeometry::lead() const {
  if (takes_pairs) return std::abs(padding(1)) % 2;
  return copies_four ? (4 - padding(1) % 4) % 4 : 0;
}
int64_t ConvGeometry::patch_width() const {
  const int64_t needed =
      lead() + (tile_w - 1) * problem.stride[1] + halo(1) + 1;
  return copies_four ? RoundUp(needed, 4) : needed;
}
int64_t ConvGeometry::patch() const {
  return ((tile_h - 1) * problem.stride[0] + halo(0) + 1) * patch_width();
}
int64_t ConvGeometry::rows() const {
  return row_warps() * tiles_m / tile_phases() * 16;
}
int64_t ConvGeometry::row_warps() const {
  return has_groups() ? 4 * groups_m : warps_m;
}
int64_t ConvGeometry::patch_words() const {
  return chunk * ((patch() + 23) / 32 * 32 + 8);
}
int64_t ConvGeometry::weight_words() const {
  return steps() * (block_channels() / 8) * 32 * (splits_weight ? 4 : 2);
}

int64_t ConvGeometry::padding(size_t axis) const {
  if (weight_phases(axis) == 1) {
    return problem.padding[axis] + windows.before[axis] * problem.stride[axis];
  }
  // The filter is not dilated: ChooseConvGeometry sees to that.
  const int64_t original = problem.kernel[axis] - 1 - problem.padding[axis];
  return taps(axis) - 1 - original / weight_phases(axis);
}
int64_t ConvGeometry::phase_start(size_t axis) const {
  const int64_t original = problem.kernel[axis] - 1 - problem.padding[axis];
  return weight_phases(axis) == 1 ? 0 : original % weight_phases(axis);
}
int64_t ConvGeometry::planes(size_t axis) const {
  return std::min(problem.stride[axis], reach(axis) + 1);
}
int64_t ConvGeometry::plane_height() const { return tile_h + halo(0); }
int64_t ConvGeometry::brought() const {
  if (images > 1) return positions();
  if (pairs_columns) return planes(0) * plane_height() * (pitch + 1);
  return planes(0) * planes(1) * plane_height() * pitch;
}
int64_t ConvGeometry::octets() const {
  return chunk / 8 * brought() / (takes_pairs ? 2 : 1);
}
// Not where the stage of the tile above is filled again before, nor where
// numbers are not scaled (a vote on scales is what threads that bring a chunk
// meet at), nor where producers take turns, which would wait for each other, or
// copy ahead or bring pairs of columns, nor where a thread has as much to do
// without those rows.
int64_t ConvGeometry::carried_rows() const {
  const bool has_above = images == 1 && tiles_per_block >= kTilesToCarry;
  const bool is_kept = chunk_producers() == 1 && chunks() < stages;
  if (!has_above || !is_kept || brings_halves() || batches_ahead > 0 ||
      pairs_columns) {
    return 0;
  }
  const int64_t fresh = planes(0) * planes(1) * step(0) * pitch;
  const bool saves =
      OctetsOfThread(*this, fresh) < OctetsOfThread(*this, brought());
  return saves ? plane_height() - step(0) : 0;
}
int64_t ConvGeometry::carried_positions() const {
  return planes(0) * planes(1) * carried_rows() * pitch;
}
int64_t ConvGeometry::run() const {
  return channel_rows ? int64_t{groups_n} * tiles_n * 8 : rows();
}
int64_t ConvGeometry::run_span() const {
  if (!channel_rows) return PositionsOfRun(rows() / images);
  const int64_t first_of_last = (groups_n - 1) * part_step() * pitch;
  return first_of_last + PositionsOfRun(int64_t{tiles_n} * 8);
}
int64_t ConvGeometry::PositionsOfRun(int64_t count) const {
  const int64_t last = count - 1;
  return last / run_pitch() * pitch + last % run_pitch() + 1;
}
int64_t ConvGeometry::positions() const { return images * image_positions(); }
int64_t ConvGeometry::image_positions() const {
  const int64_t patch = planes(0) * planes(1) * plane_height() * pitch;
  const int64_t multiple = takes_lines            ? kPixelsOfLine
                           : octets_of_row() == 2 ? 8
                           : takes_pairs          ? 2
                                                  : 1;
  if (!problem.has_stride()) {
    const int64_t last =
        TapOffset(taps(0) * taps(1) - 1) + phase_shift() + run_span();
    return RoundUp(std::max(patch, last), multiple);
  }
  // Rows and columns of the filter move a run independently.
  int64_t down = 0;
  for (int64_t y = 0; y < taps(0); ++y) {
    down = std::max(down, TapOffset(y * taps(1)));
  }
  int64_t across = 0;
  for (int64_t x = 0; x < taps(1); ++x) {
    across = std::max(across, TapOffset(x));
  }
  return RoundUp(std::max(patch, down + across + run_span()), multiple);
}
int64_t ConvGeometry::TapOffset(int64_t tap) const {
  const int64_t y = tap / taps(1) * dilation(0);
  const int64_t x = ColumnOfTap(tap % taps(1)) * dilation(1);
  const int64_t plane =
      y % problem.stride[0] * planes(1) + x % problem.stride[1];
  return (plane * plane_height() + y / problem.stride[0]) * pitch + lead() +
         x / problem.stride[1];
}
int64_t ConvGeometry::OffsetOf(int64_t eight) const {
  if (takes_lines) return eight * kUnitsOfLines;
  const int64_t octets = chunk / 8;
  if (octets_of_row() == 1) {
    // The search asks of each tap; most chunks have one octet.
    const int64_t taps_of_octet = taps(0) * taps(1);
    const int64_t octet = eight / taps_of_octet;
    const int64_t first = octet == 0 ? 0 : octet * positions();
    return first + TapOffset(eight % taps_of_octet);
  }
  return eight % octets / 2 * 2 * positions() + 2 * TapOffset(eight / octets);
}
bool ConvGeometry::has_empty_half() const {
  return chunk / 8 * taps(0) * taps(1) % 2 != 0;
}
int64_t ConvGeometry::product_calls() const {
  const int64_t calls = octets_of_row() == 2 ? chunk / 16 : 1;
  const int64_t steps_of_call = steps() / calls;
  if (products() > 1 && steps_of_call > MostStepsOfChain(problem)) return 1;
  return HidesTurn(*this, steps_of_call) ? calls : 1;
}
int64_t ConvGeometry::chains() const {
  if (products() == 1) return 1;
  const int64_t steps_of_call = CeilDiv(steps(), product_calls());
  if (product_calls() == 1) return CeilDiv(steps(), MostStepsOfChain(problem));
  int64_t chains = 1;
  while (product_calls() % chains != 0 ||
         product_calls() / chains * steps_of_call > MostStepsOfChain(problem)) {
    ++chains;
  }
  return chains;
}
bool ConvGeometry::loops_products() const {
  return product_calls() * products() > 1 &&
         HidesTurn(*this, steps() / std::max(product_calls(), chains()));
}
int64_t ConvGeometry::zero_units() const {
  const int64_t of_matrix = channel_rows ? int64_t{tiles_n} * 8 : 64;
  return rows_of_eight() ? PositionsOfRun(of_matrix) : of_matrix;
}
int64_t ConvGeometry::pixel_units() const {
  return input_parts() * (chunk / 8) * positions();
}
int64_t ConvGeometry::weight_units() const {
  return weight_parts() * steps() * 2 * block_channels();
}
int64_t ConvGeometry::scale_count() const {
  return problem.groups * channel_blocks() * block_channels();
}

ConvPacking ConvGeometry::packing() const {
  return {has_groups(),          lays_lines, chunk,
          block_channels(),      row_parts,  problem.joined,
          problem.channel_phases};
}
bool ConvGeometry::LaysLike(const ConvGeometry& other) const {
  return lays_lines && other.lays_lines && problem.input == other.problem.input;
}
bool ConvGeometry::IsTileOf(ConvGeometry other) const {
  other.tiles_per_block = tiles_per_block;
  other.teams = teams;
  other.in_turns = in_turns;
  other.image_step = image_step;
  other.walks_columns = walks_columns;
  other.spares_registers = spares_registers;
  other.stages = stages;
  other.keeps_weights = keeps_weights;
  other.batches_ahead = batches_ahead;
  if (other.sums_chunks() == sums_chunks()) other.chunk = chunk;
  return *this == other;
}
bool ConvGeometry::shares_chunks() const {
  if (producers == 1 || batches_ahead > 0) return false;
  return turns_lines || chunks() > 1 || octets() > 128 * octets_at_once();
}
int64_t ConvGeometry::plane_pitch() const {
  const int64_t laid = 8 * column_phases;  // at once
  const int64_t banks = holds_images() ? 16 : 32;
  return (column_phases * tiles_n * 8 + banks - 1 - laid) / banks * banks +
         laid;
}
int64_t ConvGeometry::plane_bytes() const {
  if (stores_sums) return 0;
  const int64_t warps = int64_t{groups()} * 4;
  if (!rounds_sums) return warps * 8 * plane_pitch() * 4;
  // As RoundedTail has them.
  const int64_t channels = (reads_beside ? 16 : 8) * std::max(result_parts, 1);
  const int64_t units = RoundUp(tiles_n, reads_beside ? 2 : 4) + 1;
  const int64_t scales = result_parts > 0 ? tiles_n : 0;
  return warps * (channels * units + scales) * 16;
}
// Lanes lay down eight numbers of each of eight rows at once, half of a warp's
// lanes at a time.
int64_t ConvGeometry::channel_run_pitch() const {
  return RoundUp(tiles_n * 8 - 8, 16) + 8;
}
int64_t ConvGeometry::channel_run_bytes() const {
  constexpr int64_t kRows = 64 / 2 + 1;  // of two channels each, and bases
  return groups_n * kRows * channel_run_pitch() * 4;
}
int64_t ConvGeometry::kept_window_words() const {
  const int64_t sharing = windows.size[1] / 2;  // lanes that share a window
  const int64_t of_thread =
      2 * (part_rows() / windows.size[0]) * CeilDiv(run_pitch() / 8, sharing);
  return of_thread * groups() * 128;
}
int64_t ConvGeometry::HeldWindowBytes(int64_t channel_bytes) const {
  return (tiles_per_block + kHeldLag) * kept_window_words() * 4 +
         int64_t{groups()} * 64 * channel_bytes;
}
// Where eight pixels side by side are not one sector of memory. What is read
// beside them is better spread over more threads (docs/kernel-notes).
bool ConvGeometry::StagesResults(const ConvDemands& demands) const {
  if (channel_rows || !demands.stores || demands.reads > 0) return false;
  if (demands.reduces_images) return false;
  if (demands.all_channels_in_a_block && !demands.has_softmax) return false;
  if (demands.windows.any()) return false;
  return phases(1) > 1 || problem.output[3] % kPixelsOfSector != 0;
}
bool ConvGeometry::CanReadBeside(const ConvDemands& demands) const {
  return demands.may_read_ahead && HasPairs();
}
bool ConvGeometry::CanRoundSums(const ConvDemands& demands) const {
  return MayRoundSums(demands) && HasPairs() && step(1) % 2 == 0;
}
bool ConvGeometry::MayRoundSums(const ConvDemands& demands) const {
  return demands.leaves_halves && channel_rows && phases(1) == 1 &&
         !problem.has_channel_phases() && problem.output[3] % 2 == 0;
}
bool ConvGeometry::CanStoreSums(const ConvDemands& demands) const {
  return demands.leaves_one_value && demands.stores && !demands.holds_images &&
         !demands.windows.any() && !CanRoundSums(demands) &&
         problem.split_pixels == 0 &&
         (problem.has_channel_phases() || HasPairs());
}
bool ConvGeometry::stores_phase_pairs() const {
  const int64_t across = problem.channel_phases[1];
  const bool have_places =
      across == 2 || (across % 2 == 0 && problem.before_result[1] % 2 == 0);
  return have_places && problem.result_extent[1] % 2 == 0;
}
bool ConvGeometry::parts_phase_fours() const {
  const bool are_even = step(1) % 2 == 0 || tiles_across() == 1;
  return problem.channel_phases[1] == 2 &&
         (!are_even || problem.result_extent[1] % 4 != 0);
}
bool ConvGeometry::HasPairs() const {
  return has_groups() && channel_rows && tile_w * column_phases % 2 == 0 &&
         problem.output[3] % 2 == 0 &&
         (phases(1) == column_phases || merges_phases());
}
int64_t ConvGeometry::BesideRegisters(const ConvDemands& demands) const {
  if (!reads_beside || rounds_sums) return 0;
  const int64_t pairs_of_lane = CeilDiv(tiles_n * 8 * column_phases, 64);
  return 2 * ChannelsAhead(demands) * pairs_of_lane * demands.pair_words;
}
int64_t ConvGeometry::StagedWords(const ConvDemands& demands) const {
  if (!StagesResults(demands)) return 0;
  // Of a warpgroup, or of a warp alone.
  const int64_t pixels = tiles_m * (has_groups() ? 64 : 16);
  const int64_t teams = has_groups() ? groups() : warps_m * warps_n;
  const int64_t rounds = CeilDiv(tiles_n, kStagedFragments);
  const int64_t fragments = CeilDiv(tiles_n, rounds);
  return teams * fragments * 8 * (pixels + 4);
}
int64_t ConvGeometry::PooledFragments() const {
  const int64_t words =
      has_groups() ? kMostWindowWords : kMostWindowWordsOfWarps;
  const int64_t most =
      std::max<int64_t>(words / (2 * WordsOfFragment(*this)), 1);
  return CeilDiv(tiles_n, CeilDiv(tiles_n, most));
}
int64_t ConvGeometry::WindowWords() const {
  if (!windows.any() || channel_rows) return 0;
  return 2 * PooledFragments() * WordsOfFragment(*this);
}
int64_t ConvGeometry::softmax_words() const {
  const int64_t sharing = has_groups() ? groups_n : warps_n;
  return sharing > 1 ? sharing * tile_h * tile_w * 2 : 0;
}

}  // namespace kiln
