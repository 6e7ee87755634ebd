"""Plans at random beside torch.compile, with a fake program in place of
gpu_survey_worker.py."""

import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import gpu_random
import gpu_survey
from survey_summary import OUT_OF_TIME

# Fails as a seed asks; else prepares, and times while no other process does.
FAKE = """
import json, os, pathlib, sys, time
_, seeds, notes, ready, _ = sys.argv[1:]
alone = pathlib.Path(notes).with_name("alone")
seeds = json.loads(pathlib.Path(seeds).read_text())
with open(notes, "a", buffering=1) as file:
    def note(seed, **fact):
        file.write(json.dumps({"seed": seed, **fact}) + "\\n")
    for seed in seeds:
        note(seed, during="tf32" if seed == 666 else "compile")
        if seed in (13, 666): os._exit(7)
        if seed == 99: time.sleep(60)
        note(seed, during="waiting")
    pathlib.Path(ready).touch()
    end = float(sys.stdin.readline())
    alone.mkdir()
    time.sleep(0.05)
    for seed in seeds:
        note(seed, us={"eager": 3.0, "compile": 2.0, "fp32": 1.0})
    alone.rmdir()
"""


class MeasureTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        program = self.folder / "fake.py"
        program.write_text(FAKE)
        for name, value in (("_PROGRAM", program), ("_GRACE_S", 1.0)):
            patch = mock.patch.object(gpu_survey, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def measure(self, *seeds, cores=4, budget_s=20.0):
        with mock.patch.object(gpu_survey.os, "cpu_count",
                               return_value=cores):
            return gpu_survey.measure("socket", list(seeds), self.folder,
                                      budget_s)

    def test_processes_time_their_plans_one_after_the_other(self):
        facts, log = self.measure(5, 3, 8, 9, cores=6)
        self.assertEqual(list(facts), [5, 3, 8, 9])
        for fact in facts.values():
            self.assertEqual(fact["us"]["fp32"], 1.0)
        self.assertEqual(log, "")

    def test_a_process_that_dies_takes_its_plans_alone(self):
        facts, _ = self.measure(1, 13, 2, 4)
        self.assertEqual([seed for seed in facts if "us" in facts[seed]],
                         [1, 2])
        self.assertEqual(facts[13], {"not_timed": "compile: the process died "
                                     "(status 7)"})
        self.assertEqual(facts[4], {"not_timed": "not begun: the process died "
                                    "(status 7)"})

    def test_a_process_that_dies_in_a_plan_of_kiln_is_a_failure(self):
        facts, _ = self.measure(1, 666)
        self.assertEqual(facts[666], {"error": "the process died (status 7)",
                                      "grade": "tf32"})

    def test_a_process_that_is_not_ready_is_stopped(self):
        begin = time.monotonic()
        facts, _ = self.measure(1, 99, budget_s=3.0)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertIn("us", facts[1])
        self.assertEqual(facts[99], {"not_timed": OUT_OF_TIME})


class SharesTest(unittest.TestCase):

    def test_two_cores_are_the_daemons(self):
        seeds = list(range(300))
        self.assertEqual(len(gpu_survey.shares(seeds, 16)), 14)
        self.assertEqual(len(gpu_survey.shares(seeds, 128)), 14)
        self.assertEqual(gpu_survey.shares(seeds, 2), [seeds])
        self.assertEqual(gpu_survey.shares([1, 2, 3], 4), [[1, 3], [2]])
        self.assertEqual(gpu_survey.shares([1, 2], 16), [[1], [2]])

    def test_plans_are_those_of_the_part_random(self):
        self.assertEqual(gpu_survey.PLANS, gpu_random.PLANS)


class FailureTest(unittest.TestCase):

    def test_whose_it_is(self):
        self.assertEqual(gpu_survey.failure("compile", "a\n b"),
                         {"not_timed": "compile: a b"})
        self.assertEqual(gpu_survey.failure("fp32", "wrong"),
                         {"error": "wrong", "grade": "fp32"})
        self.assertEqual(gpu_survey.failure("fp32", "no memory", excused=True),
                         {"not_timed": "fp32: no memory"})


class RunTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.scratch = pathlib.Path(holder.name)
        self.measured = []

    def report_of(self, fact):
        """(lines, ok, report) where all plans have the same fact."""
        def measure(socket, seeds, folder, budget_s):
            self.measured += seeds
            return dict.fromkeys(seeds, fact), "the log"
        gpu_report = mock.MagicMock()
        gpu_report.report.side_effect = (
            lambda part, client, ok, results: {"part": part, "ok": ok,
                                               "results": results})
        with mock.patch.multiple(gpu_survey, measure=measure, PLANS=3,
                                 gpu_daemon=mock.MagicMock(),
                                 gpu_report=gpu_report):
            return gpu_survey.run(self.scratch, 9.0, 5000)

    def test_the_report_is_of_the_plans_from_the_seed_on(self):
        lines, ok, report = self.report_of(
            {"us": {"eager": 3.0, "compile": 2.0, "fp32": 1.0}})
        self.assertTrue(ok and report["ok"])
        self.assertEqual(report["part"], "survey")
        self.assertEqual(
            [int(seed) for seed in report["results"]["timed"]],
            gpu_survey.random_plans.seeds_of_plans(5000, 3))
        self.assertEqual(report["summary"]["fp32"]["plans"], 3)
        self.assertNotIn("the log", lines)

    def test_what_was_timed_before_is_not_timed_again(self):
        seeds = gpu_survey.random_plans.seeds_of_plans(5000, 3)
        times = {"eager": 3.0, "compile": 2.0, "fp32": 1.0}
        gpu_survey.keep(self.scratch, {
            seeds[0]: {"us": times, "compiler": "abc"},
            seeds[2]: {"not_timed": OUT_OF_TIME}})
        _, ok, report = self.report_of({"us": times})
        self.assertTrue(ok)
        self.assertEqual(self.measured, seeds[1:])
        self.assertEqual(report["results"]["kept"], {"abc": seeds[:1]})
        self.assertEqual([int(seed) for seed in report["results"]["timed"]],
                         seeds)

    def test_goes_on_where_it_was_cut_off(self):
        times = {"eager": 3.0, "compile": 2.0, "fp32": 1.0}
        self.report_of({"us": times})
        self.measured.clear()
        self.report_of({"us": times})
        self.assertEqual(self.measured, [])

    def test_what_pytorch_refuses_is_ok_and_nothing_else(self):
        for fact, good in (({"not_timed": "compile: no such op"}, True),
                           ({"not_timed": OUT_OF_TIME}, False),
                           ({"error": "wrong", "grade": "fp32"}, False)):
            with self.subTest(fact):
                lines, ok, _ = self.report_of(fact)
                self.assertEqual(ok, good)
                self.assertEqual(lines[0], "the log")


if __name__ == "__main__":
    unittest.main()
