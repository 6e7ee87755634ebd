"""What the picture of docs/performance.md is drawn from."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

import plot_facts
import result_files

ENVIRONMENT = {"gpu": "GPU 1", "driver": "1.2", "nvrtc": "13.0",
               "torch": "2.0", "date": "2026-01-02"}


def chain(**modes):
    return {"times_ms": {mode: {"median": ms} for mode, ms in modes.items()},
            "floor_ms": 0.1}


class PlotFactsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def keep(self, name, results, grade="fp32"):
        report = {"part": name.removesuffix("-tf32"), "grade": grade,
                  "results": results, **ENVIRONMENT}
        (self.folder / f"{name}.json").write_text(json.dumps(report))

    def facts(self):
        return plot_facts.facts(result_files.ResultFiles(self.folder))

    def test_bars_of_both_grades_and_no_more_than_was_timed(self):
        self.keep("bench-P2", {"P2": chain(kiln=0.5, eager=4.0)})
        self.keep("bench-P2-tf32", {"P2": chain(kiln=0.3, eager=4.0)}, "tf32")
        self.assertEqual(
            self.facts()["chains"]["P2"]["bars"],
            {"Kiln, fp32": 0.5, "Kiln, tf32": 0.3, "eager": 4.0})

    def test_names_gpu_and_date(self):
        self.keep("bench-P2", {"P2": chain(kiln=0.5)})
        self.assertIn("GPU 1, 2026-01-02", self.facts()["caption"])

    def test_rows_that_were_not_timed_are_left_out(self):
        self.keep("generality-0", {"conv_k5": {"ok": False, "error": ""}})
        self.assertEqual(self.facts()["rows"], {"fp32": {}, "tf32": {}})

    def test_another_number_is_another_fingerprint(self):
        self.keep("bench-P2", {"P2": chain(kiln=0.5)})
        before = plot_facts.fingerprint(self.facts())
        self.assertEqual(plot_facts.fingerprint(self.facts()), before)
        self.keep("bench-P2", {"P2": chain(kiln=0.6)})
        self.assertNotEqual(plot_facts.fingerprint(self.facts()), before)


if __name__ == "__main__":
    unittest.main()
