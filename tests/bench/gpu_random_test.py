"""Which plans at random there are, and what is said of them."""

import math
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import gpu_random
import headline
import random_plans

from kiln import plan_text


class PlansTest(unittest.TestCase):

    SEEDS = random_plans.seeds_of_plans(1, 200)

    def test_a_seed_is_a_plan(self):
        first = random_plans.text(self.SEEDS[0])
        self.assertEqual(first, random_plans.text(self.SEEDS[0]))
        self.assertNotEqual(first, random_plans.text(self.SEEDS[1]))

    def test_plans_can_be_read_and_are_of_a_size_to_be_judged(self):
        for seed in self.SEEDS:
            with self.subTest(seed):
                plan = plan_text.parse(random_plans.text(seed))
                for declared in plan.inputs:
                    self.assertLess(math.prod(declared.dims), 1 << 27)

    def test_every_kind_of_op_is_among_them(self):
        texts = "".join(map(random_plans.text, self.SEEDS))
        for op in ("conv2d", "conv_transpose2d", "group_norm", "batch_norm",
                   "max_pool2d", "avg_pool2d", "softmax", "logsumexp", "mean",
                   "amax", "clamp", "mish"):
            self.assertIn(f"= {op}(", texts)
        for dtype in ("f32", "f16", "bf16"):
            self.assertIn(f"x: {dtype}[", texts)


class NamesTest(unittest.TestCase):

    def test_both_grades_of_convolutions_of_f32_alone(self):
        names = gpu_random.names_of(1, 100)
        self.assertEqual(sum(name.startswith("fp32/") for name in names), 100)
        for name in names:
            case = gpu_random.case_named(name)
            self.assertEqual(plan_text.parse(case.text).grade,
                             name.split("/")[0])
            self.assertIn(case.name.split("/")[0],
                          gpu_random.grades_of(int(name.split("/")[1])))
            if name.startswith("tf32/"):
                self.assertIn("x: f32", case.text)
                self.assertIn("= conv", case.text)


class RunTest(unittest.TestCase):

    def test_the_report_says_which_plans_were_run_by_the_worker(self):
        seen = {}

        def worker(daemon, names, scratch, budget_s, worker_file):
            seen.update(names=names, worker_file=worker_file)
            return {name: {"launches": 30, "ms": 1.0, "times_eager": 2.0,
                           "predicted_us": 900.0} for name in names}

        with (tempfile.TemporaryDirectory() as folder,
              mock.patch.multiple(gpu_random.gpu_matrix, run=worker,
                                  gpu_daemon=mock.MagicMock(),
                                  gpu_report=mock.MagicMock()),
              mock.patch.object(gpu_random, "PLANS", 3)):
            gpu_report = gpu_random.gpu_matrix.gpu_report
            lines, ok, _ = gpu_random.run(pathlib.Path(folder), 9.0, 5000)
            part, _, said_ok, found = gpu_report.report.call_args.args
        self.assertEqual(seen["names"], gpu_random.names_of(5000, 3))
        self.assertEqual(seen["worker_file"], "gpu_random_worker.py")
        self.assertEqual((part, said_ok, ok), ("random", True, True))
        self.assertEqual(found["first_seed"], 5000)
        self.assertEqual(found["run"], len(seen["names"]))
        self.assertIn("0 wrong", lines[-1])


class SummaryTest(unittest.TestCase):

    NAMES = gpu_random.names_of(1, 3)[:3]

    def fact(self, times_eager):
        return {"launches": 30, "ms": 0.1, "eager_ms": 0.1 * times_eager,
                "times_eager": times_eager, "predicted_us": 80.0}

    def test_slower_plans_are_named_and_ok(self):
        results = dict(zip(self.NAMES, map(self.fact, (4.0, 0.5, 4.0))))
        lines, ok = gpu_random.summarise(self.NAMES, results)
        self.assertTrue(ok)
        self.assertEqual(lines, [
            f"{self.NAMES[1]}: 0.50 x as fast as eager PyTorch, 0.1000 ms",
            "3 of 3 plans, 90 launches: 0 wrong; 2.00 x as fast as eager "
            "PyTorch in the geometric mean, 1 slower"])
        found = gpu_random.counts(self.NAMES, results)
        self.assertIn("output v", found["slower"][self.NAMES[1]]["plan"])
        self.assertEqual(
            headline.of_report({"part": "random", "results": found}),
            "3 of 3 plans, 0 wrong; 2.00 x eager PyTorch, 1 slower")

    def test_plans_that_take_far_longer_than_predicted_are_named_and_ok(self):
        results = dict(zip(self.NAMES, map(self.fact, (4.0, 4.0, 4.0))))
        results[self.NAMES[2]]["predicted_us"] = 20.0
        lines, ok = gpu_random.summarise(self.NAMES, results)
        self.assertTrue(ok)
        self.assertEqual(lines[0], f"{self.NAMES[2]}: 4.0 x as long as "
                         "predicted, 0.1000 ms")
        found = gpu_random.counts(self.NAMES, results)["beyond"]
        self.assertEqual(list(found), [self.NAMES[2]])
        self.assertIn("output v", found[self.NAMES[2]]["plan"])

    def test_predictions_are_of_kernels_of_a_launch(self):
        def variant(*kernels):
            return types.SimpleNamespace(kernels=[
                types.SimpleNamespace(prepares=prepares, predicted_us=us)
                for prepares, us in kernels])
        explained = types.SimpleNamespace(schedule=types.SimpleNamespace(
            variants=[variant((True, 4.0), (False, 2.0), (False, 0.5)),
                      variant((False, 8.0))]))
        self.assertEqual(gpu_random.predicted_us(explained), 2.5)

    def test_wrong_and_missing_plans_are_not_ok(self):
        results = {self.NAMES[0]: self.fact(4.0),
                   self.NAMES[1]: {"error": "the process died"}}
        lines, ok = gpu_random.summarise(self.NAMES, results)
        self.assertFalse(ok)
        self.assertEqual(lines[:2], [f"{self.NAMES[1]}: the process died",
                                     f"not run, out of time: {self.NAMES[2]}"])
        refused = {name: {"refused": "no such op"} for name in self.NAMES}
        self.assertFalse(gpu_random.summarise(self.NAMES, refused)[1])
        wrong = gpu_random.counts(self.NAMES, results)["wrong"]
        self.assertIn("output v", wrong[self.NAMES[1]]["plan"])


if __name__ == "__main__":
    unittest.main()
