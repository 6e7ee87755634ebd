"""Which plans bench/same_kernels.py finds to differ."""

import contextlib
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import same_kernels


class FakeCompiler:
    """Answers by turns, of each text, machine code of the same launch, which
    is the text unless it is given; counts what it is asked."""

    def __init__(self, launch=None, **answers):
        self._launch = launch
        self._answers = answers
        self.asked = 0

    def code(self, plan):
        self.asked += 1
        answers = self._answers[plan.text]
        answers.append(answers.pop(0))
        return same_kernels.Code(self._launch or plan.text, (answers[-1],))


def starts(compiler):
    return lambda: contextlib.nullcontext(compiler)


class DifferingTest(unittest.TestCase):

    def test_names_those_that_differ(self):
        wanted = {"one": same_kernels.Plan("a"),
                  "two": same_kernels.Plan("b")}
        lines = []
        found = same_kernels.differ_at_first(
            FakeCompiler(a=["1"], b=["2"]), FakeCompiler(a=["1"], b=["3"]),
            wanted, lines.append)
        self.assertEqual(found, ["two"])
        self.assertEqual(lines, ["differs at first: two"])

    def test_what_both_may_make_is_the_same(self):
        often = FakeCompiler(a=["1", "1", "2"])
        rarely = FakeCompiler(a=["2"])
        wanted = {"one": same_kernels.Plan("a"), "two": same_kernels.Plan("b")}
        self.assertEqual(same_kernels.differ_always(
            starts(often), starts(rarely), wanted, ["one"]), [])
        self.assertEqual(same_kernels.differ_always(
            starts(FakeCompiler(a=["1", "1", "2"], b=["1"])),
            starts(FakeCompiler(a=["2"], b=["3", "4"])), wanted,
            ["two", "one"]), ["two"])

    def test_other_launches_are_not_tried_again(self):
        before, now = FakeCompiler(a=["1"]), FakeCompiler("other", a=["2"])
        self.assertEqual(same_kernels.differ_always(
            starts(before), starts(now), {"one": same_kernels.Plan("a")},
            ["one"]), ["one"])
        self.assertEqual((before.asked, now.asked), (1, 1))


class CodeTest(unittest.TestCase):

    INSTRUCTIONS = {b"1": "FADD R0, R1, R2", b"2": "FADD R0, R1, R2",
                    b"3": "FMUL R0, R1, R2", b"4": "LDC R0, c[0x4][0x8]",
                    b"5": "LDC R0, c[0x4][0x8]"}

    def runs_as(self, one, other, disassemble=INSTRUCTIONS.get):
        return same_kernels.Code("a", (one,)).runs_as(
            same_kernels.Code("a", (other,)), disassemble)

    def test_instructions_count_and_not_what_else_a_module_has(self):
        self.assertTrue(self.runs_as(b"1", b"2"))
        self.assertFalse(self.runs_as(b"1", b"3"))
        self.assertFalse(self.runs_as(b"1", b"2", same_kernels.no_disassembler))

    def test_what_reads_constants_of_its_module_must_be_the_same_file(self):
        self.assertTrue(self.runs_as(b"4", b"4"))
        self.assertFalse(self.runs_as(b"4", b"5"))

    def test_launches_count(self):
        self.assertFalse(same_kernels.Code("a", (b"1",)).runs_as(
            same_kernels.Code("b", (b"1",)), self.INSTRUCTIONS.get))


class RenewedTest(unittest.TestCase):
    WANTED = {"one": same_kernels.Plan("a", kinds={"matrix"}),
              "two": same_kernels.Plan("b", kinds={"latency", "survey"}),
              "three": same_kernels.Plan("c", kinds={"survey"})}

    def report(self, measured, compiler, kinds, differing, plans=3):
        return {"measured": measured, "compiler": compiler,
                "target": "h100-sxm", "nvrtc": "13.0",
                "asked": ["latency", "matrix"], "kinds": kinds,
                "results": {"plans": plans, "differing": differing}}

    def test_parts_are_the_same_that_no_comparison_finds_to_differ(self):
        earlier = self.report("a", "b", ["matrix"], ["four"], plans=2)
        same = self.report("b", "c", ["latency", "matrix"], ["three"])
        self.assertEqual(same_kernels.renewed(earlier, same, self.WANTED),
                         self.report("a", "c", ["matrix"], ["four"], plans=2))

    def test_plans_that_differ_add_up(self):
        earlier = self.report("a", "b", ["latency", "matrix"], [])
        same = self.report("b", "c", ["matrix"], ["two"])
        found = same_kernels.renewed(earlier, same, self.WANTED)
        self.assertEqual(found["kinds"], ["matrix"])
        self.assertEqual(found["results"]["differing"], ["two"])

    def test_only_what_the_comparison_goes_on_with_is_renewed(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            before = self.report("a", "b", [], [])
            for number, earlier in enumerate((
                    before, {**before, "compiler": "c"},
                    {**before, "target": "h200"}, {**before, "nvrtc": "12.9"},
                    {**before, "asked": ["survey"]})):
                (root / f"same_kernels-{number}.json").write_text(
                    json.dumps(earlier))
            same = self.report("b", "c", [], [])
            self.assertEqual(same_kernels.comparisons_before(same, root),
                             [before])


class KeepTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        (self.root / "bundle" / "bin").mkdir(parents=True)
        (self.root / "bundle" / "bin" / "kilnd").write_bytes(b"new")
        for name, value in (("ROOT", self.root),
                            ("BUNDLE", self.root / "bundle")):
            patch = mock.patch.object(same_kernels.gpu_daemon, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch.object(same_kernels, "RESULTS", self.root)
        patch.start()
        self.addCleanup(patch.stop)

    def keep(self, compiler, kinds=(), names=("norm_after_mish", "norm_layer")):
        """`names` are rows of the file of the second part; "norm_layer" differs."""
        (self.root / "generality-1.json").write_text(json.dumps(
            {"part": "generality-1", "compiler": compiler,
             "results": {name: {"name": name, "fp32": {}} for name in names}}))
        same_kernels.keep_rows_of_parts(
            {"measured": "abc", "asked": ["generality-1", "generality-2"],
             "kinds": kinds, "results": {"differing": ["tf32/norm_layer"]}})

    def kept(self, part="generality-1"):
        """What gpu_check goes on with."""
        path = (same_kernels.gpu_parts.scratch_folder(part) / "results.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()
                ] if path.exists() else []

    def test_rows_that_do_not_differ_know_their_compiler(self):
        self.keep("abc")
        self.assertEqual(
            self.kept(),
            [{"compiler": "abc", "name": "norm_after_mish", "fp32": {}}])

    def test_rows_of_another_compiler_are_not_kept(self):
        self.keep("other")
        self.assertEqual(self.kept(), [])

    def test_rows_that_are_of_another_part_now_are_kept_for_it(self):
        moved = same_kernels.generality.names_of(2)[0]
        self.keep("abc", names=[moved])
        self.assertEqual([row["name"] for row in self.kept("generality-2")],
                         [moved])

    def test_plans_of_the_survey_are_kept_in_the_same_way(self):
        times = {"kiln_us": 1.0, "compile_us": 2.0, "eager_us": 3.0}
        (self.root / "survey.json").write_text(json.dumps(
            {"part": "survey", "compiler": "abc",
             "results": {"timed": {"5": {"fp32": times},
                                   "7": {"fp32": times, "tf32": times}}}}))
        same_kernels.keep_rows_of_parts(
            {"measured": "abc", "asked": ["survey"], "kinds": [],
             "results": {"differing": ["tf32/7"]}})
        self.assertEqual(
            same_kernels.gpu_survey.timed_before(
                same_kernels.gpu_parts.scratch_folder("survey")),
            {5: {"compiler": "abc",
                 "us": {"eager": 3.0, "compile": 2.0, "fp32": 1.0}}})

    def test_a_part_that_need_not_be_measured_is_left_alone(self):
        self.keep("abc", kinds=["generality-1"],
                  names=same_kernels.generality.names_of(1))
        self.assertEqual(self.kept(), [])

    def test_a_part_whose_file_lacks_rows_is_not(self):
        self.keep("abc", kinds=["generality-1"])
        self.assertEqual(len(self.kept()), 1)

    def test_a_part_of_which_all_is_kept_is_not_measured_again(self):
        path = self.root / "results.jsonl"
        facts = {"one": {"name": "one", "compiler": "abc"},
                 "two": {"name": "two"}}
        same_kernels.gpu_matrix.leave_kept(path, facts)
        self.assertEqual(path.read_text(), json.dumps(facts["one"]) + "\n")


class PlansTest(unittest.TestCase):

    def setUp(self):
        self.plans = same_kernels.plans()

    def test_each_is_there_once(self):
        distinct = {(plan.text, plan.variant) for plan in self.plans.values()}
        self.assertEqual(len(distinct), len(self.plans))
        for name in ("fp32/P1", "tf32/P2", "fp32/norm_layer", "fp32/1",
                     "eager/P4", "template/rows_team"):
            self.assertIn(name, self.plans)

    def test_they_know_the_parts_that_run_them(self):
        self.assertEqual(self.plans["fp32/P1"].kinds, {"repeat", "bench-P1"})
        self.assertEqual(self.plans["fp32/norm_layer"].kinds,
                         {"repeat", "generality-1"})
        # Its operands need a scale from image to image: checked, too.
        self.assertEqual(self.plans["template/conv_small_images"].kinds,
                         {"tests", "sanitize"})
        every = set().union(*(plan.kinds for plan in self.plans.values()))
        # The bundle alone has the matrix.
        self.assertEqual(every | {"matrix"}, set(same_kernels.KINDS))


if __name__ == "__main__":
    unittest.main()
