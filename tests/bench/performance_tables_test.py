"""Tables of docs/performance.md, from small made-up result files."""

import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

import generality_rows
import markdown
import performance_tables
import result_files
import survey_summary

ENVIRONMENT = {"gpu": "GPU 1", "driver": "1.2", "nvrtc": "13.0",
               "torch": "2.0", "date": "2026-01-02"}


def spreads(**medians):
    return {mode: {"median": ms, "p10": ms, "p90": ms}
            for mode, ms in medians.items()}


def chain(kiln, **modes):
    return {"times_ms": spreads(kiln=kiln, **modes), "ok": True, "why": "",
            "first_result_s": {"kiln": 0.2, "kiln_fast": 0.5},
            "cold_compile_ms": 400.0,
            "nvrtc_ms": 390.0, "norm": 4e-8, "norm_torch": 3e-8, "worst": 1e-6,
            "worst_torch": 0.0, "floor_ms": 0.1, "of_floor": 0.1 / kiln,
            "bytes_per_s": 1e12, "flops": 0, "flops_per_s": 0.0,
            "copy_bytes_per_s": 3e12, "service_us": 510}


def row(kiln, compiled, ok=True):
    return {"ok": ok, "times_ms": spreads(kiln=kiln, eager=4.0,
                                          torch_compile=compiled),
            "times_compile": compiled / kiln, "times_best": compiled / kiln,
            "first_result_s": {"kiln": 0.2, "kiln_fast": 0.5,
                               "torch_compile": 2.0},
            "torch_startup_s": 3.0, "bytes_per_s": 1e12, "flops": 1e9,
            "flops_per_s": 5e13, "of_floor": 0.5, "norm_ratio": 0.9}


def both(facts):
    return {"fp32": facts, "tf32": facts}


class TablesTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def keep(self, name, results, grade="fp32", **facts):
        report = {"part": name.removesuffix("-tf32"), "ok": True,
                  "grade": grade, "results": results, **ENVIRONMENT, **facts}
        (self.folder / f"{name}.json").write_text(json.dumps(report))

    def text(self, name):
        files = result_files.ResultFiles(self.folder)
        return "\n".join(performance_tables.TABLES[name](files))

    def test_without_files_every_table_says_so(self):
        for name in performance_tables.TABLES:
            self.assertIn(markdown.NOT_MEASURED.lower(),
                          self.text(name).lower(), name)

    def keep_same_kernels(self, kinds, differing, measured="old"):
        self.keep(f"same_kernels-{measured}",
                  {"plans": 1234, "differing": differing}, compiler="new",
                  measured=measured, kinds=kinds, part="same_kernels")
        return result_files.ResultFiles(self.folder)

    def test_kernels_of_another_tree_may_be_the_same(self):
        files = self.keep_same_kernels(["generality-2", "matrix"], [])
        self.assertEqual(files.may_be_of("generality-2", "new"),
                         {"new", "old"})
        self.assertEqual(files.may_be_of("matrix-3", "new"), {"new", "old"})
        self.assertEqual(files.may_be_of("generality-1", "new"), {"new"})
        self.assertEqual(files.may_be_of("generality-2", "newer"), {"newer"})
        self.assertEqual(files.may_be_of("host", "new"), {"new"})
        self.assertIn("all 1,234 plans are the same", self.text("environment"))

        files = self.keep_same_kernels(["matrix"], [], "older")
        self.assertEqual(files.may_be_of("matrix-3", "new"),
                         {"new", "old", "older"})
        self.assertEqual(files.may_be_of("generality-2", "new"),
                         {"new", "old"})
        self.assertIn("all 2,468 plans are the same", self.text("environment"))

        files = self.keep_same_kernels(["tests"], ["fp32/norm_layer"])
        self.assertEqual(files.may_be_of("generality-2", "new"), {"new"})
        self.assertEqual(files.may_be_of("tests", "new"), {"new", "old"})
        self.assertNotIn("the same", self.text("environment"))

    def test_parts_whose_kernels_are_others_are_named(self):
        self.keep("random", {}, compiler="old")
        self.keep("latency", {}, compiler="old")
        files = self.keep_same_kernels(["latency"], [])
        self.assertEqual(files.of_trees_before(), ["random"])
        self.assertIn("some kernels have changed: `random`.",
                      self.text("environment"))
        self.assertEqual(self.keep_same_kernels(
            ["latency", "random"], []).of_trees_before(), [])

    def test_rows_of_a_run_before_are_counted(self):
        self.keep("generality-0", {"one": both(row(1.0, 3.0)),
                                   "two": {"compiler": "old",
                                           **both(row(1.0, 3.0))}})
        self.assertIn("1 row of other plans is of a run before",
                      self.text("environment"))

    def test_best_of_tf32_includes_max_autotune_of_fp32(self):
        self.keep("bench-P2", {"P2": chain(0.5, eager=4.0, max_autotune=1.0)})
        self.keep("bench-P2-tf32", {"P2": chain(0.25, eager=4.0)}, "tf32")
        self.assertIn("| P2 | **0.500** | 4.00 |  | 1.00 |",
                      self.text("chains-fp32"))
        self.assertIn("| P2 | **0.250** | 4.00 |  | 0.100 | 4.00 |",
                      self.text("chains-tf32"))

    def test_other_gpus_stand_between_the_aims_and_this_one(self):
        self.keep("bench-P2", {"P2": chain(0.25)})
        self.keep("bench-P2-tf32", {"P2": chain(0.125)}, "tf32")
        self.keep("generality-0", {"norm": both(row(1.0, 3.0))})
        self.assertNotIn("GPU 0", self.text("aims"))
        (self.folder / "h100").mkdir()
        self.keep("h100/bench-P2", {"P2": chain(0.5)}, part="bench-P2",
                  gpu="GPU 0")
        lines = self.text("aims").splitlines()
        self.assertEqual(
            [line.split(" | ")[0].strip("| ") for line in lines[2:]],
            ["aim, on an H100", "GPU 0, 2026-01-02", "GPU 1, 2026-01-02"])
        self.assertIn("|  | 0.500 |  |  |  |", lines[3])
        self.assertIn("|  | 0.250 / 0.125 |  |  | 3.00 / 3.00 |", lines[4])

    def test_a_wrong_chain_is_named(self):
        wrong = {**chain(0.5), "ok": False, "why": "norm error 1"}
        self.keep("bench-P3", {"P3": wrong})
        self.assertIn("**no**: norm error 1", self.text("error"))

    def test_a_chain_that_was_cut_off_is_left_out(self):
        self.keep("bench-P3", {"P3": {"times_ms": {}, "ok": True}})
        self.assertEqual(self.text("chains-fp32"), markdown.NOT_MEASURED)

    def test_generality_counts_means_and_losers(self):
        self.keep("generality-0", {"conv_k5": both(row(1.0, 4.0))})
        self.keep("generality-1", {
            "conv_s2": both(row(1.0, 0.5, ok=False)),
            "norm_layer": {"ok": False, "error": "the process died"},
            "norm_f16": both({**row(1.0, 1.0), "flops": 0})})
        text = self.text("generality-fp32-summary")
        self.assertIn(f"4 of {len(generality_rows.ROWS)} plans ran", text)
        self.assertIn("2 of them wrong (`conv_s2`, `norm_layer`); 3 were timed",
                      text)
        self.assertIn("1.26 × as fast as torch.compile", text)
        self.assertIn("those 2 with a convolution it is 1.41 × as fast", text)
        self.assertIn("| `conv_s2` | not explained yet | 0.500 |", text)

    def test_generality_rows_are_sorted_and_all_named(self):
        self.keep("generality-0", {"conv_k5": both(row(1.0, 4.0)),
                                   "conv_s2": both(row(1.0, 0.5)),
                                   "norm_layer": {"ok": False, "error": ""}})
        text = self.text("generality-fp32")
        self.assertLess(text.index("| conv_s2 |"), text.index("| conv_k5 |"))
        self.assertIn("Not timed: norm_layer.", text)
        self.assertIn("Not run: norm_channels_3,", text)

    def test_grades_are_kept_apart(self):
        self.keep("generality-0", {"conv_k5": {"fp32": row(1.0, 4.0),
                                               "tf32": row(0.5, 4.0)}})
        self.assertIn("| conv_k5 | **1.00** |", self.text("generality-fp32"))
        self.assertIn("| conv_k5 | **0.500** |", self.text("generality-tf32"))

    def test_host_says_how_busy_it_was(self):
        hit = {"ratio": 1.25, "empty_us": 58.0, "median_us": 190.0}
        self.keep("host", {
            "compile": [{"plan": "p", "target": "t4", "repeats": 15,
                         "total_ms": 115.2, "outside_nvrtc_ms": 3.0}],
            "hit": {"memory": hit, "artifact": hit, "disk": hit}},
                  cpu="CPU 1", cores=2, load=0.04)
        text = self.text("host")
        self.assertIn("2 cores of which 0.0 were busy before", text)
        self.assertIn("| p | t4 | 115 | 3.0 |", text)

    def test_repeated_launches_are_counted_once_there_are_any(self):
        self.keep("sanitize", {"memcheck, Python": ""})
        self.assertNotIn("launched", self.text("checks"))
        self.keep("repeat", {"plans": 4, "run": 3, "launches": 1200,
                             "fewest_launches": 30,
                             "wrong": {"fp32/P1": {"error": "differs"}}})
        self.assertIn("3 of 4 larger plans were launched 1,200 times, each at "
                      "least 30 times on the same inputs: 1 failed or differed",
                      self.text("checks"))

    def test_plans_at_random_are_counted(self):
        self.keep("random", {"plans": 5, "run": 5, "wrong": {},
                             "times_eager": 3.218,
                             "slower": {"fp32/7": {"times_eager": 0.9}}})
        self.assertIn("5 of 5 plans at random: 0 wrong; 3.22 × as fast as "
                      "eager PyTorch in the geometric mean, 1 slower",
                      self.text("checks"))

    def keep_survey(self, not_timed, slower=1, **more):
        timed = {str(seed): {"fp32": {"kiln_us": 10.0, "compile_us": 5.0 + seed,
                                      "eager_us": 40.0}}
                 for seed in range(slower)}
        timed["9"] = {grade: {"kiln_us": 10.0, "compile_us": 20.0,
                              "eager_us": 40.0} for grade in ("fp32", "tf32")}
        self.keep("survey", {"first_seed": 1, "plans": 2 + slower,
                             "timed": timed, "not_timed": not_timed,
                             "wrong": {}, **more})
        return self.text("survey")

    def test_a_survey_counts_means_and_names_the_slowest(self):
        text = self.keep_survey({"8": "compile: no such op"})
        self.assertIn("Of 3 plans at random, of the seeds from 1 on, 2 were "
                      "timed, 1 could not be, and 0 were wrong.", text)
        self.assertIn("- `fp32`, 2 plans: 1.00 × as fast as torch.compile in",
                      text)
        self.assertIn("- `tf32`, 1 plans: 2.00 × as fast", text)
        self.assertIn("| 0 | `fp32` | **10.0** | 5.00 | 40.0 | 0.500 |", text)
        self.assertNotIn("| 9 |", text)

    def test_a_survey_says_what_it_has_kept(self):
        text = self.keep_survey({}, kept={"abc": [1, 2]})
        self.assertIn("2 of them are of a run before", text)

    def test_a_survey_names_few(self):
        text = self.keep_survey({}, slower=5)
        self.assertEqual(text.count("\n| "), 1 + 5)
        with mock.patch.object(survey_summary, "_MOST_NAMED", 2):
            self.assertEqual(self.text("survey").count("\n| "), 1 + 2)

    def test_a_survey_that_was_cut_off_is_left_out(self):
        self.assertEqual(self.keep_survey({"8": survey_summary.OUT_OF_TIME}),
                         markdown.NOT_MEASURED)

    def test_latency_without_mps(self):
        self.keep("latency", {"plain": {"Unregister": 216.0}, "mps": {}})
        self.assertIn("| `Unregister` | 216 | – |", self.text("latency"))


class DocumentTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.files = result_files.ResultFiles(pathlib.Path(folder.name))
        self.document = "Before.\n" + "".join(
            f"<!-- table: {name} -->\nold\n<!-- end -->\n"
            for name in performance_tables.TABLES) + "After.\n"

    def test_replaces_what_is_between_comments(self):
        text = performance_tables.rendered(self.document, self.files)
        self.assertTrue(text.startswith("Before.\n<!-- table: environment -->"))
        self.assertTrue(text.endswith("<!-- end -->\nAfter.\n"))
        self.assertNotIn("old\n", text)

    def test_check_sees_a_difference_and_write_removes_it(self):
        self.assertTrue(performance_tables.difference(self.document,
                                                      self.files))
        text = performance_tables.rendered(self.document, self.files)
        self.assertEqual(performance_tables.difference(text, self.files), "")

    def test_refuses_unknown_missing_and_unclosed_tables(self):
        for wrong in (self.document.replace("chains-fp32", "chains-fp33"),
                      self.document.replace("<!-- table: error -->", ""),
                      self.document + "<!-- table: error -->\n"):
            with self.assertRaises(ValueError):
                performance_tables.rendered(wrong, self.files)


class NumbersTest(unittest.TestCase):

    def test_three_digits(self):
        for value, text in ((1091.2, "1091"), (12.23, "12.2"), (5.2, "5.20"),
                            (0.502, "0.502"), (0.02487, "0.0249"),
                            (0.0045, "0.00450"), (0.0, "0"), (None, "")):
            self.assertEqual(markdown.significant(value), text)

    def test_other_numbers(self):
        self.assertEqual(markdown.scientific(3.89e-8), "3.9e-8")
        self.assertEqual(markdown.percent(0.9561), "96 %")
        self.assertEqual(markdown.percent(0.0495), "5.0 %")
        self.assertEqual(markdown.listing(["a", "b", "c"]), "a, b and c")


if __name__ == "__main__":
    unittest.main()
