#include "jit/compile/direct_spec.h"

#include "fmt/format.h"
#include "jit/compile/linear_tile.h"

namespace kiln {
namespace {

// One overload for each kernel.
DirectKernel KernelOf(const OneTapTile& tile) {
  return {"narrow_conv2d.cu",
          "kiln_narrow_conv2d",
          "kiln::NarrowConv2d",
          {fmt::format("static constexpr int kAtOnce = {}, kSlices = {};",
                       tile.channels, tile.slices)}};
}

DirectKernel KernelOf(const WindowTile& tile) {
  return {"narrow_windows.cu",
          "kiln_narrow_conv2d",
          "kiln::NarrowWindows",
          {fmt::format("static constexpr int kRows = {}, kSlices = {};",
                       tile.rows, tile.slices)}};
}

DirectKernel KernelOf(const DenseTile& tile) {
  return {"dense.cu",
          "kiln_dense",
          "kiln::Dense",
          {fmt::format("static constexpr int kLanes = {}, kImages = {}, "
                       "kResults = {};",
                       tile.lanes, tile.images, tile.results)}};
}

DirectKernel KernelOf(const StemTile& tile) {
  return {"stem_conv2d.cu",
          "kiln_stem_conv2d",
          "kiln::StemConv2d",
          {fmt::format("static constexpr int kWarpsC = {}, kWarpsH = {}, "
                       "kWarpsW = {};",
                       tile.warps_c, tile.warps_h, tile.warps_w),
           fmt::format("static constexpr int kTilesM = {}, kTilesN = {}, "
                       "kRowsOfWarp = {};",
                       tile.tiles_m, tile.tiles_n, tile.rows),
           fmt::format("static constexpr int kRowsOfQuad = {}, "
                       "kColumnsAtOnce = {}, kRunOfQuads = {};",
                       tile.rows_of_quad, tile.columns_at_once, tile.run),
           fmt::format("static constexpr bool kSplits = {};", tile.splits)}};
}

DirectKernel KernelOf(const HeadTile& tile) {
  return {"head_conv2d.cu",
          "kiln_head_conv2d",
          "kiln::HeadConv2d",
          {fmt::format("static constexpr int kTileW = {};", tile.width)}};
}

DirectKernel KernelOf(const LinearTile& tile) {
  DirectKernel kernel = {
      tile.keeps_weights ? "linear_kept.cu" : "linear.cu", "kiln_linear",
      tile.keeps_weights ? "kiln::KeptLinear" : "kiln::Linear",
      LinearConstants(tile)};
  kernel.cluster = static_cast<uint32_t>(tile.parts);
  return kernel;
}

std::string WhyNarrow(const char* taps, int slices, int pixels) {
  return fmt::format(
      "few results of {}: {} of a block {} all of {} pixels", taps,
      slices == 1 ? std::string("a thread") : fmt::format("{} threads", slices),
      slices == 1 ? "has" : "have", pixels);
}

std::string Why(const OneTapTile& part, const DirectTile& tile) {
  return WhyNarrow("one tap", part.slices, tile.vector);
}

std::string Why(const WindowTile& part, const DirectTile& tile) {
  return WhyNarrow("windows", part.slices, tile.vector * part.rows);
}

std::string Why(const DenseTile& part, const DirectTile&) {
  return fmt::format(
      "a linear layer of few images: {} lanes have {} results of {}",
      part.lanes, part.results, part.images);
}

std::string Why(const StemTile& part, const DirectTile&) {
  return fmt::format(
      "few channels: warps of tensor cores have {} channels of {} x {} results",
      part.tiles_m * 16, part.rows, part.tiles_n * 8);
}

std::string Why(const HeadTile& part, const DirectTile& tile) {
  return fmt::format(
      "few results: warps of tensor cores have a filter's columns apart, of "
      "tiles of {} x {}",
      tile.threads / 32, part.width);
}

std::string Why(const LinearTile& part, const DirectTile& tile) {
  return fmt::format(
      "a linear layer: tiles of {} channels of {} images, {} chunks of 64 on "
      "their way, {} blocks, {} resident{}",
      part.warpgroups * 64, part.images, part.stages, tile.blocks,
      tile.min_blocks,
      (part.parts > 1 ? fmt::format(", {} blocks share sums", part.parts)
                      : "") +
          (part.halves > 0 ? ", of rows in halves" : "") +
          (part.keeps_weights ? ", which keep their weights" : ""));
}

}  // namespace

DirectKernel DirectKernelOf(const DirectTile& tile) {
  return std::visit([](const auto& part) { return KernelOf(part); }, tile.part);
}

std::string WhyDirect(const DirectTile& tile) {
  return std::visit([&](const auto& part) { return Why(part, tile); },
                    tile.part);
}

}  // namespace kiln
