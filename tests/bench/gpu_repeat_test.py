"""Which plans are launched repeatedly, how often, and what is said of it."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import chains
import generality_rows
import gpu_repeat
import headline

from kiln import plan_text


class CasesTest(unittest.TestCase):

    def setUp(self):
        self.cases = {case.name: case.text for case in gpu_repeat.cases()}

    def test_every_row_and_chain_is_there(self):
        for name in [*generality_rows.ROWS, *chains.CHAINS]:
            self.assertIn(f"fp32/{name}", self.cases)

    def test_only_convolutions_have_the_other_grade(self):
        rounded = {name.split("/")[1] for name in self.cases
                   if name.startswith("tf32/")}
        self.assertLessEqual({"P2", "P3", "P4", "conv_k5", "transpose_k5"},
                             rounded)
        for name in ("P1", "norm_batch_1", "norm_layer"):
            self.assertNotIn(name, rounded)

    def test_plans_have_the_grade_of_their_name(self):
        for name, text in self.cases.items():
            self.assertEqual(plan_text.parse(text).grade, name.split("/")[0])


class LaunchesTest(unittest.TestCase):

    def test_bounded_by_count_and_time(self):
        more = gpu_repeat.launches_after
        self.assertEqual(more(0.001) + gpu_repeat.TRIALS, 500)
        self.assertEqual(more(0.1), 15)
        self.assertEqual(more(0.05), 35)
        self.assertEqual(more(9.0) + gpu_repeat.TRIALS, 20)

    def test_what_differs_is_an_error(self):
        self.assertEqual(gpu_repeat.facts([0, 0]),
                         {"launches": 2, "differing": 0, "elements": 0})
        found = gpu_repeat.facts([0, 3, 0, 7])
        self.assertEqual(found["error"], "2 of 4 launches differ from the "
                         "first, in 7 elements at most")


class SummaryTest(unittest.TestCase):

    NAMES = ["fp32/P1", "fp32/P2", "tf32/P2"]

    def test_all_the_same(self):
        results = {name: gpu_repeat.facts([0] * launches)
                   for name, launches in zip(self.NAMES, (30, 500, 500))}
        lines, ok = gpu_repeat.summarise(self.NAMES, results)
        self.assertTrue(ok)
        self.assertEqual(lines, ["3 of 3 plans, 1,030 launches, at least 30 of "
                                 "each: 0 wrong"])
        report = {"part": "repeat",
                  "results": gpu_repeat.counts(self.NAMES, results)}
        self.assertEqual(headline.of_report(report),
                         "3 of 3 plans, 0 wrong; 1,030 launches")

    def test_names_what_differs_fails_or_is_missing(self):
        results = {"fp32/P1": gpu_repeat.facts([0, 1]),
                   "fp32/P2": {"error": "the process died"}}
        lines, ok = gpu_repeat.summarise(self.NAMES, results)
        self.assertFalse(ok)
        self.assertEqual(lines[1:3], ["fp32/P2: the process died",
                                      "not run, out of time: tf32/P2"])
        wrong = gpu_repeat.counts(self.NAMES, results)["wrong"]
        self.assertEqual(list(wrong), ["fp32/P1", "fp32/P2"])

    def test_nothing_at_all_is_not_ok(self):
        lines, ok = gpu_repeat.summarise(self.NAMES, {})
        self.assertFalse(ok)
        self.assertIn("0 of 3 plans, 0 launches", lines[-1])


if __name__ == "__main__":
    unittest.main()
