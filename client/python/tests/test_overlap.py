"""Which tensors TorchKernel refuses to launch with."""

import unittest

from kiln.errors import KilnError
from kiln.torch_kernel import _check_overlap


class OverlapTest(unittest.TestCase):
    """Two inputs, slots 0 and 1, and two outputs."""

    SIZES = [64, 64, 64, 128]

    def check(self, *addresses):
        _check_overlap(addresses, self.SIZES, [2, 3])

    def test_neighbours_do_not_overlap(self):
        self.check(0, 64, 128, 192)

    def test_inputs_may_be_the_same(self):
        self.check(0, 0, 64, 128)

    def test_an_output_in_an_input_is_refused(self):
        with self.assertRaisesRegex(KilnError, "Slot 2 .* overlaps slot 1"):
            self.check(0, 64, 127, 256)

    def test_so_are_outputs_in_each_other(self):
        with self.assertRaisesRegex(KilnError, "overlaps slot"):
            self.check(0, 64, 192, 128)


if __name__ == "__main__":
    unittest.main()
