"""What is kept of plans at random beside torch.compile, and what is said."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

import headline
import survey_summary


def us(eager, compiled, **grades):
    return {"us": {"eager": eager, "compile": compiled, **grades}}


FACTS = {3: us(8.0, 4.0, fp32=2.0, tf32=1.0), 4: us(9.0, 3.0, fp32=6.0),
         5: us(4.0, 9.0, fp32=5.0), 7: {"not_timed": "compile: no such op"},
         8: {"error": "output 0: norm error", "grade": "tf32"}}


class SummaryTest(unittest.TestCase):

    def setUp(self):
        self.found = survey_summary.results(3, FACTS)

    def test_every_plan_is_kept(self):
        self.assertEqual(self.found["first_seed"], 3)
        self.assertEqual(self.found["plans"], 5)
        self.assertEqual(self.found["timed"]["3"], {
            "fp32": {"kiln_us": 2.0, "compile_us": 4.0, "eager_us": 8.0},
            "tf32": {"kiln_us": 1.0, "compile_us": 4.0, "eager_us": 8.0}})
        self.assertEqual(list(self.found["timed"]["4"]), ["fp32"])
        self.assertEqual(self.found["not_timed"], {"7": "compile: no such op"})
        self.assertEqual(self.found["wrong"],
                         {"tf32/8": "output 0: norm error"})

    def test_what_was_kept_is_a_fact_again(self):
        facts = {**FACTS, 4: {**FACTS[4], "compiler": "abc"}}
        found = survey_summary.results(3, facts)
        self.assertEqual(found["kept"], {"abc": [4]})
        self.assertEqual(found["timed"], self.found["timed"])
        for seed in (3, 4, 5):
            self.assertEqual(survey_summary.fact_of(found, str(seed)),
                             facts[seed])

    def test_grades_are_summed_up_apart(self):
        fp32 = survey_summary.summary(self.found, "fp32")
        self.assertEqual((fp32["plans"], fp32["wrong"]), (3, 0))
        self.assertAlmostEqual(fp32["times_compile"], 1.8 ** (1 / 3))
        self.assertAlmostEqual(fp32["times_best"], 0.8 ** (1 / 3))
        self.assertEqual(fp32["at_least_best"], 1)
        self.assertEqual(fp32["slower"], ["4", "5"])
        tf32 = survey_summary.summary(self.found, "tf32")
        self.assertEqual((tf32["plans"], tf32["wrong"]), (1, 1))
        self.assertEqual(tf32["slower"], [])

    def test_nothing_timed_is_no_error(self):
        found = survey_summary.results(1, {})
        self.assertEqual(survey_summary.summary(found, "fp32")["plans"], 0)
        self.assertEqual(survey_summary.slowest(found), [])

    def test_only_want_of_time_makes_it_incomplete(self):
        self.assertTrue(survey_summary.is_complete(self.found))
        self.assertFalse(survey_summary.is_complete(survey_summary.results(
            1, {1: {"not_timed": survey_summary.OUT_OF_TIME}})))

    def test_lines_hide_nothing(self):
        lines = survey_summary.lines(self.found)
        self.assertEqual(lines[:3], [
            "tf32/8: WRONG: output 0: norm error",
            "not timed, compile: no such op: 7",
            "fp32/4: 0.50 x as fast as the best of PyTorch: 6.0 us, "
            "torch.compile 3.0, eager 9.0"])
        self.assertIn("fp32: 3 plans timed, 0 wrong; 1.22 x as fast as "
                      "torch.compile in the geometric mean, 0.93 x as the "
                      "best of PyTorch, at least as fast as that best in 1",
                      lines)

    def test_headline(self):
        self.assertEqual(
            headline.of_report({"part": "survey", "results": self.found}),
            "3 of 5 plans timed, 1 wrong; fp32: 1.22 x torch.compile, 2 below "
            "the best; tf32: 4.00 x torch.compile, 0 below the best")


if __name__ == "__main__":
    unittest.main()
