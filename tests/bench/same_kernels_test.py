"""Which plans bench/same_kernels.py finds to differ."""

import contextlib
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import same_kernels


class FakeCompiler:
    """Answers by turns, of each text."""

    def __init__(self, **answers):
        self._answers = answers

    def digest(self, text, variant):
        del variant
        answers = self._answers[text]
        answers.append(answers.pop(0))
        return answers[-1]


def starts(compiler):
    return lambda: contextlib.nullcontext(compiler)


class DifferingTest(unittest.TestCase):

    def test_names_those_that_differ(self):
        wanted = {"one": ("a", "auto"), "two": ("b", "auto")}
        lines = []
        found = same_kernels.differ_at_first(
            FakeCompiler(a=["1"], b=["2"]), FakeCompiler(a=["1"], b=["3"]),
            wanted, lines.append)
        self.assertEqual(found, ["two"])
        self.assertEqual(lines, ["differs at first: two"])

    def test_what_both_may_make_is_the_same(self):
        often = FakeCompiler(a=["1", "1", "2"])
        rarely = FakeCompiler(a=["2"])
        plan = ("a", "auto")
        self.assertFalse(same_kernels.differs_always(
            starts(often), starts(rarely), plan))
        self.assertTrue(same_kernels.differs_always(
            starts(often), starts(FakeCompiler(a=["3", "4"])), plan))


class PlansTest(unittest.TestCase):

    def test_each_is_there_once(self):
        plans = same_kernels.plans()
        self.assertEqual(len(set(plans.values())), len(plans))
        for name in ("fp32/P1", "tf32/P2", "fp32/norm_layer", "fp32/1",
                     "eager/P4", "template/rows_team"):
            self.assertIn(name, plans)


if __name__ == "__main__":
    unittest.main()
