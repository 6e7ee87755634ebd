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

    def test_slices_differ_where_there_are_some_for_all_deviations(self):
        of_rows = gpu_templates.ROW_DEVIATIONS.items()
        of_images = gpu_templates.IMAGE_DEVIATIONS.items()
        for dim, (name, deviations) in [
                *((2, item) for item in of_rows),
                *((0, item) for item in of_images)]:
            images = [tensor for tensor
                      in plan_text.parse(gpu_templates.PLANS[name]).inputs
                      if not tensor.is_parameter]
            self.assertEqual(1, len(images), name)
            self.assertEqual(0, images[0].dims[dim] % len(deviations), name)


if __name__ == "__main__":
    unittest.main()
