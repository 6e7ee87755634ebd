"""The plans of bench/gpu_templates.py are accepted, and get on an H100 the tiles
that they are named for.

    gpu_templates_schedule_test.py BIN-FOLDER
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import gpu_templates
import host_times

# By the start of a plan's name.
_TILES = {"conv_apart": "pixels by rows", "conv_eights": "channels by eights",
          "conv_lines": "channels by lines"}


class GpuTemplatesScheduleTest(unittest.TestCase):
    bin_folder = None

    def test_plans_are_accepted_and_have_their_tiles(self):
        with host_times.running(self.bin_folder) as daemon:
            for name, text in gpu_templates.PLANS.items():
                with self.subTest(name):
                    chosen = self._chosen_tiles(daemon, text)
                    for start, tile in _TILES.items():
                        if name.startswith(start):
                            self.assertTrue(any(tile in one for one in chosen),
                                            chosen)

    @staticmethod
    def _chosen_tiles(daemon, text):
        (result,) = daemon.kiln("explain", "-", "--target", "h100-sxm",
                                "--schedule", plan_text=text)["results"]
        return [candidate["kind"]
                for variant in result["schedule"]["variants"]
                for kernel in variant["kernels"]
                for candidate in kernel["candidates"] if candidate["chosen"]]


if __name__ == "__main__":
    GpuTemplatesScheduleTest.bin_folder = pathlib.Path(sys.argv.pop())
    unittest.main()
