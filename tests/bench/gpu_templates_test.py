"""The plans that compute-sanitizer runs on a GPU are plans."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import gpu_templates
from kiln import plan_text


class GpuTemplatesTest(unittest.TestCase):

    def test_every_plan_is_read(self):
        for name, text in gpu_templates.PLANS.items():
            with self.subTest(name):
                plan = plan_text.parse(text)
                self.assertEqual(1, len(plan.outputs))

    def test_no_input_is_larger_than_what_is_quick_under_a_sanitizer(self):
        for name, text in gpu_templates.PLANS.items():
            for tensor in plan_text.parse(text).inputs:
                elements = 1
                for extent in tensor.dims:
                    elements *= extent
                self.assertLessEqual(elements, 2**23, name)


if __name__ == "__main__":
    unittest.main()
