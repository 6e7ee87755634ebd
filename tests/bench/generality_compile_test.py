"""The plans of bench/generality_rows.py compile for an H100 as they are meant
to.

    generality_compile_test.py BIN-FOLDER

Every third, and those of f32 in one grade, by turns; with KILN_FULL_MATRIX in
the environment all, in both.
"""

import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import generality_rows
import host_times

_TARGET = ("--target", "h100-sxm")
# Of the plain path, which takes what no other kernel does.
_PLAIN = {"kiln_conv2d", "kiln_conv_transpose2d"}
_CONSTANT = re.compile(r"\b(kSharedBytes|kProducerRegisters|kOctetsAtOnce)"
                       r" = (\d+)")
# Registers with which producers load more octets at once than two, unless
# registers are to be spared, which no first choice does (conv_registers.cc).
_MANY_REGISTERS = 80


def plans_with_convolutions():
    """(name, grade, plan text) of those whose turn it is, of f32 in the grades
    of theirs."""
    is_full = "KILN_FULL_MATRIX" in os.environ
    plans = [(name, text) for name, text in generality_rows.plan_texts().items()
             if "conv" in text]
    for turn, (name, text) in enumerate(plans[::1 if is_full else 3]):
        if "input x: f32" not in text:
            yield name, "fp32", text
            continue
        grades = ("fp32", "tf32")
        for grade in grades if is_full else [grades[turn % 2]]:
            yield name, grade, f"grade {grade}\n{text}"


def compile_plan(daemon, text):
    """(symbols of its kernels, constants of each source for warpgroups)."""
    with tempfile.TemporaryDirectory(prefix="kiln-") as folder:
        (result,) = daemon.kiln("compile", "-", *_TARGET, "-o", folder,
                                plan_text=text)["results"]
        sources = [dict(_CONSTANT.findall(path.read_text()))
                   for path in pathlib.Path(folder).glob("*.cu")]
    return ({kernel["symbol"] for kernel in result["kernels"]},
            [{name: int(value) for name, value in source.items()}
             for source in sources if "kOctetsAtOnce" in source])


def first_choice(daemon, text):
    """(symbols of its kernels, shared memory that its convolutions ask for)."""
    (result,) = daemon.kiln("explain", "-", "--schedule", *_TARGET,
                            plan_text=text)["results"]
    kernels = [kernel for variant in result["schedule"]["variants"]
               for kernel in variant["kernels"]]
    return ({kernel["symbol"] for kernel in kernels},
            {kernel["dynamic_shared_bytes"] for kernel in kernels
             if kernel["symbol"].startswith("kiln_conv")})


def spares_registers(source):
    return (source["kOctetsAtOnce"] == 2 and
            source["kProducerRegisters"] >= _MANY_REGISTERS)


class GeneralityCompileTest(unittest.TestCase):
    bin_folder = None

    # Prevents that a convolution falls to the plain path, right but several
    # times slower, because its kernel spills or no tile fits any more; and that
    # it takes twice as long to compile, and another tile, because its first
    # choice spills.
    def test_first_choices_compile_and_take_tensor_cores(self):
        with host_times.running(self.bin_folder) as daemon:
            for name, grade, text in plans_with_convolutions():
                with self.subTest(name, grade=grade):
                    chosen, shared_bytes = first_choice(daemon, text)
                    symbols, sources = compile_plan(daemon, text)
                    self.assertTrue(symbols)
                    self.assertLessEqual(chosen, symbols)
                    self.assertFalse(symbols & _PLAIN)
                    for source in sources:
                        self.assertIn(source["kSharedBytes"], shared_bytes)
                        self.assertFalse(spares_registers(source))


if __name__ == "__main__":
    GeneralityCompileTest.bin_folder = pathlib.Path(sys.argv.pop())
    unittest.main()
