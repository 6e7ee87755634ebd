"""Several parts in a row, with a fake program in place of scripts/gpu_check."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

import gpu_parts
import gpu_sequence

# Writes its result file, or fails, as the part's name asks.
FAKE = """
import json, pathlib, sys
name, out = sys.argv[1:]
if name == "faults": sys.exit("crashed")
(pathlib.Path(out) / f"{name}.json").write_text(json.dumps({
    "part": name, "ok": name != "matrix-1", "compiler": "new",
    "date": "2026-01-01",
    "results": {"plans": 3, "run": 3, "wrong": {}}}))
sys.exit(name == "matrix-1")
"""


def chain_report(compiler="new", modes=("kiln", "eager"), ok=True):
    times = {mode: {"median": 1.0} for mode in modes}
    return {"part": "bench-P1", "ok": ok, "compiler": compiler,
            "results": {"P1": {"times_ms": times, "complete": True}}}


class SequenceTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)
        self.started, self.said = [], []

    def run_parts(self, *words, **options):
        def command(part, seconds):
            self.started.append(part.name)
            return [sys.executable, "-c", FAKE, part.name, str(self.out)]
        return gpu_sequence.run(
            gpu_parts.named(words, "fp32"), self.out, compiler="new",
            command=command, max_autotune=lambda part: False,
            say=self.said.append, **options)

    def states(self, outcomes):
        return {outcome.name: outcome.state for outcome in outcomes}

    def test_keeps_what_is_complete_and_says_so(self):
        self.run_parts("matrix-0")
        outcomes = self.run_parts("matrix-0", "matrix-2")
        self.assertEqual(self.states(outcomes),
                         {"matrix-0": "kept", "matrix-2": "ok"})
        self.assertEqual(self.started, ["matrix-0", "matrix-2"])
        self.assertIn("[1/2] matrix-0: kept from 2026-01-01; --again measures "
                      "again", self.said)

    def test_again_keeps_nothing(self):
        self.run_parts("matrix-0")
        outcomes = self.run_parts("matrix-0", again=True)
        self.assertEqual(self.states(outcomes), {"matrix-0": "ok"})
        self.assertEqual(self.started, ["matrix-0", "matrix-0"])

    def test_failures_stop_nothing(self):
        outcomes = self.run_parts("matrix-0", "matrix-1", "matrix-2",
                                  "faults")
        self.assertEqual(self.started,
                         ["matrix-0", "matrix-1", "matrix-2", "faults"])
        self.assertEqual(list(self.states(outcomes).values()),
                         ["ok", "FAILED", "ok", "FAILED"])
        self.assertIn("left no result file", outcomes[3].note)
        self.assertEqual(gpu_sequence.table(outcomes)[-1],
                         "gpu_check: 2 of 4 parts ok")

    def test_a_crash_leaves_no_older_file(self):
        stale = self.out / "faults.json"
        stale.write_text(json.dumps({"part": "faults", "ok": False,
                                     "results": {}}))
        outcomes = self.run_parts("faults")
        self.assertEqual(self.states(outcomes), {"faults": "FAILED"})
        self.assertFalse(stale.exists())

    def test_starts_nothing_without_time(self):
        outcomes = self.run_parts("tests", "matrix-0", budget_s=1)
        self.assertEqual(set(self.states(outcomes).values()), {"not run"})
        self.assertEqual(self.started, [])


class CompleteTest(unittest.TestCase):

    def test_wants_this_code_generation_and_nothing_wrong(self):
        complete = gpu_sequence.is_complete
        self.assertTrue(complete(chain_report(), "new", False))
        self.assertFalse(complete(chain_report("old"), "new", False))
        self.assertFalse(complete(chain_report(ok=False), "new", False))
        self.assertFalse(complete(None, "new", False))

    def test_wants_max_autotune_where_asked(self):
        self.assertFalse(gpu_sequence.is_complete(chain_report(), "new", True))
        full = chain_report(modes=("kiln", "eager", "max_autotune"))
        self.assertTrue(gpu_sequence.is_complete(full, "new", True))
        self.assertTrue(gpu_sequence.has_max_autotune(full))
        self.assertFalse(gpu_sequence.has_max_autotune(chain_report()))
        self.assertFalse(gpu_sequence.has_max_autotune(None))
        self.assertFalse(gpu_sequence.has_max_autotune(
            {**full, "results": {}}))


    def test_plans_at_random_are_those_of_the_seed(self):
        complete = gpu_sequence.is_complete
        for part in ("random", "survey"):
            report = {"part": part, "ok": True, "compiler": "new",
                      "results": {"first_seed": 1}}
            self.assertTrue(complete(report, "new", False))
            self.assertFalse(complete(report, "new", False, 5000))


class NamedTest(unittest.TestCase):

    def names(self, *words, grade="fp32"):
        return [part.name for part in gpu_parts.named(words, grade)]

    def test_all_is_everything_but_a_second_p1(self):
        names = self.names("all")
        self.assertEqual(names[0], "tests")
        self.assertEqual(len(names), 4 + 7 + 7 + 4)
        self.assertNotIn("bench-P1-tf32", names)

    def test_groups_have_the_asked_grade(self):
        self.assertEqual(self.names("bench", grade="tf32"),
                         ["bench-P2-tf32", "bench-P3-tf32", "bench-P4-tf32"])
        self.assertEqual(self.names("generality-0", grade="tf32"),
                         ["generality-0"])
        self.assertEqual(len(self.names("generality", grade="tf32")), 4)
        self.assertEqual(self.names("bench-P2-tf32", "tests"),
                         ["tests", "bench-P2-tf32"])

    def test_parts_without_a_grade_ignore_it(self):
        self.assertEqual(self.names("tests", grade="tf32"), ["tests"])
        self.assertEqual(self.names("repeat", grade="tf32"), ["repeat"])

    def test_refuses_other_words(self):
        with self.assertRaises(KeyError):
            self.names("bench-P9")


if __name__ == "__main__":
    unittest.main()
