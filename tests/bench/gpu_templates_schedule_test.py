"""The plans of bench/gpu_templates.py are accepted, and get on an H100 the tiles
and the kernels that they are named for.

    gpu_templates_schedule_test.py BIN-FOLDER
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import gpu_templates
import host_times

# By the start of a plan's name: of the tile, of why it is, and of its details.
_REASONS = {"conv_beside": "what ops read of other tensors",
            "conv_rounded": "rounded in registers",
            "conv_laid_results": "as the next convolution takes them",
            "linear_kept": "which keep their weights",
            "linear_leaves_halves": "leaves them in halves",
            "linear_keeps_and_leaves": "leaves them in halves"}
_TILES = {"conv_apart": "pixels by rows", "conv_eights": "channels by eights",
          "conv_lines": "channels by lines",
          "transpose_channel_phases": "phases as channels"}
_DETAILS = {"transpose_all_phases": "in all phases"}

_KERNELS = {
    "narrow": "kiln_narrow_conv2d", "narrow_slices": "kiln_narrow_conv2d",
    "narrow_single_pixels": "kiln_narrow_conv2d",
    "narrow_many": "kiln_narrow_conv2d",
    "windows": "kiln_narrow_conv2d", "windows_slices": "kiln_narrow_conv2d",
    "windows_f16": "kiln_narrow_conv2d",
    "head": "kiln_head_conv2d", "head_wide": "kiln_head_conv2d",
    "linear": "kiln_linear", "linear_shared": "kiln_linear",
    "linear_kept": "kiln_linear", "linear_split": "kiln_split_rows",
    "linear_split_tf32": "kiln_split_rows",
    "linear_leaves_halves": "kiln_split_rows",
    "linear_keeps_and_leaves": "kiln_split_rows",
    "stem": "kiln_stem_conv2d", "stem_one_channel": "kiln_stem_conv2d",
    "stem_tf32": "kiln_stem_conv2d", "stem_fp32": "kiln_stem_conv2d",
    "rows_warp": "kiln_row_warp", "rows_warps": "kiln_row_warp",
    "rows_warps_softmax": "kiln_row_warp", "rows_block": "kiln_row_block",
    "rows_cluster": "kiln_row_block", "rows_mean": "kiln_row_block",
    "rows_powers_twice": "kiln_row_block",
    "rows_root_mean_square": "kiln_row_block", "rows_team": "kiln_row_team",
    "rows_turns": "kiln_row_block", "rows_backwards": "kiln_row_block",
    "rows_chain": "kiln_row_chain", "rows_chain_images": "kiln_row_chain",
    "rows_chain_kept": "kiln_row_chain", "rows_chain_nested": "kiln_row_chain",
    "rows_chain_splits": "kiln_row_chain",
    "rows_chain_totals": "kiln_row_chain",
    "rows_then_total": "kiln_row_warp_chain",
    "reduce_whole_parts": "kiln_reduce",
    "rows_warp_chain": "kiln_row_warp_chain",
    "rows_warps_chain": "kiln_row_warp_chain",
    "rows_variance": "kiln_row_block",
    "rows_variance_streamed": "kiln_row_block",
    "rows_norm_of_extremes": "kiln_row_warp_chain",
    "columns": "kiln_column_block", "columns_mean": "kiln_column_block",
    "columns_mean_in_registers": "kiln_row_warp_chain",
    "columns_logsumexp": "kiln_column_block",
    "columns_logsumexp_in_registers": "kiln_row_warp_chain",
    "columns_chain": "kiln_row_chain",
    "columns_warp_chain": "kiln_row_warp_chain",
    "columns_softmax": "kiln_row_warp_chain",
    "columns_of_many_lanes": "kiln_row_warp_chain",
}


class GpuTemplatesScheduleTest(unittest.TestCase):
    bin_folder = None

    def test_plans_are_accepted_and_have_their_tiles(self):
        with host_times.running(self.bin_folder) as daemon:
            for name, text in gpu_templates.PLANS.items():
                with self.subTest(name):
                    kernels = self._kernels(daemon, text)
                    symbols = [kernel["symbol"] for kernel in kernels]
                    if name in _KERNELS:
                        self.assertIn(_KERNELS[name], symbols)
                    candidates = [candidate for kernel in kernels
                                  for candidate in kernel["candidates"]
                                  if candidate["chosen"]]
                    chosen = [candidate["kind"] for candidate in candidates]
                    if name.startswith("conv_shared_sums"):
                        self.assertTrue(any("share sums" in kind
                                            for kind in chosen))
                    if name.startswith("conv_row_parts"):
                        self.assertTrue(any("filter in" in kind
                                            for kind in chosen))
                    if name == "rows_cluster":
                        self.assertIn("clusters", chosen[0])
                    if name == "rows_chain_splits":
                        self.assertIn("all reductions in", chosen[0])
                    if name == "rows_chain_totals":
                        self.assertEqual("all reductions in 128", chosen[0])
                    for start, reason in _REASONS.items():
                        if name.startswith(start):
                            self.assertTrue(any(reason in kernel["why"]
                                                for kernel in kernels))
                    if name == "conv_rounded_images":
                        self.assertIn("rounds", kernels[-1]["candidates"][0][
                            "detail"])
                    for start, detail in _DETAILS.items():
                        if name.startswith(start):
                            self.assertIn(detail, candidates[-1]["detail"])
                    for start, tile in _TILES.items():
                        if name.startswith(start):
                            self.assertTrue(any(tile in one for one in chosen),
                                            chosen)

    @staticmethod
    def _kernels(daemon, text):
        (result,) = daemon.kiln("explain", "-", "--target", "h100-sxm",
                                "--schedule", plan_text=text)["results"]
        return [kernel for variant in result["schedule"]["variants"]
                for kernel in variant["kernels"]]


if __name__ == "__main__":
    GpuTemplatesScheduleTest.bin_folder = pathlib.Path(sys.argv.pop())
    unittest.main()
