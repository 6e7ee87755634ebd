"""The plans of bench/generality_rows.py compile for an H100 as they are meant
to.

    generality_compile_test.py BIN-FOLDER
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import generality_rows
import host_times

# Of the plain path, which takes what no other kernel does.
_PLAIN = {"kiln_conv2d", "kiln_conv_transpose2d"}


class GeneralityCompileTest(unittest.TestCase):
    bin_folder = None

    # Prevents that a convolution falls to the plain path, right but several
    # times slower, because its kernel spills or no tile fits any more.
    def test_convolutions_take_tensor_cores(self):
        with host_times.running(self.bin_folder) as daemon:
            for name, text in generality_rows.plan_texts().items():
                if "conv" not in text:
                    continue
                with self.subTest(name):
                    (result,) = daemon.kiln(
                        "compile", "-", "--target", "h100-sxm",
                        plan_text=text)["results"]
                    symbols = {k["symbol"] for k in result["kernels"]}
                    self.assertTrue(symbols)
                    self.assertFalse(symbols & _PLAIN)


if __name__ == "__main__":
    GeneralityCompileTest.bin_folder = pathlib.Path(sys.argv.pop())
    unittest.main()
