"""A row of the generality matrix, with stand-ins for the GPU and PyTorch."""

import pathlib
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "client" / "python")]

import generality

KILN_MS = {"fp32": 2.0, "tf32": 1.0}
TORCH_MS = {"eager": 8.0, "torch_compile": 4.0, "max_autotune": 3.0}
_PLAN = types.SimpleNamespace(inputs=[], outputs=[])


def median(ms):
    return {"median": ms, "p10": ms, "p90": ms}


class Kernel:
    launch_steps, prepare_steps = ["kiln_conv"], []

    def __init__(self, grade):
        self.grade = grade


class Client:
    """What side_by_side.first_results compiles with; no daemon answers."""

    def __init__(self):
        self.compiled = []


def first_results(client, text, tensors, grade):
    client.compiled.append(grade)
    compiled = types.SimpleNamespace(
        grade=grade, source="COMPILED",
        timing=types.SimpleNamespace(total_us=5000, nvrtc_us=4000))
    return compiled, [], [], {"kiln": 0.1, "kiln_fast": 0.5}


class RowTest(unittest.TestCase):

    def setUp(self):
        self.timed = []

        def time_torch(plan, sets, mode):
            self.timed.append(mode)
            return median(TORCH_MS[mode]), 2.0
        stand_ins = {
            "torch": {"cuda": types.SimpleNamespace(
                synchronize=lambda: None, empty_cache=lambda: None)},
            "kiln": {"TorchKernel": lambda compiled: Kernel(compiled.grade),
                     "plan_text": types.SimpleNamespace(
                         parse=lambda text: _PLAN)},
            "gpu_cases": {"Case": lambda *arguments: None,
                          "inputs": lambda *arguments: []},
            "side_by_side": {
                "first_results": first_results,
                "rotated": lambda plan, tensors: [tensors],
                "time_kiln": lambda kernel, sets: {
                    "kiln": median(KILN_MS[kernel.grade])},
                "time_torch": time_torch,
                "floor_facts": lambda *arguments: {"of_floor": 0.5}}}
        for name, members in stand_ins.items():
            before = sys.modules.get(name)
            sys.modules[name] = types.SimpleNamespace(**members)
            self.addCleanup(self.restore, name, before)
        self.comparison = generality.Comparison.__new__(generality.Comparison)
        self.comparison.client = Client()
        self.comparison.copy_rate = 3e12
        self.comparison.startup_s = 6.0
        self.comparison._judge = (
            lambda plan, tensors, kernel, plain, outputs, grade: {"ok": True})

    def restore(self, name, before):
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before

    def test_pytorch_is_timed_once_beside_both_grades(self):
        rows = generality.attempt(self.comparison, "conv_s2")
        self.assertEqual(self.comparison.client.compiled, ["fp32", "tf32"])
        self.assertEqual(self.timed, ["eager", "torch_compile"])
        self.assertEqual(rows["fp32"]["times_compile"], 2.0)
        self.assertEqual(rows["tf32"]["times_compile"], 4.0)
        self.assertEqual(rows["tf32"]["times_best"], 4.0)
        for row in rows.values():
            self.assertEqual(row["first_result_s"]["torch_compile"], 2.0)
            self.assertEqual(row["first_result_s"]["kiln"], 0.1)
            self.assertEqual(row["first_result_s"]["kiln_fast"], 0.5)
            self.assertEqual(row["torch_startup_s"], 6.0)

    def test_max_autotune_where_it_is_asked_for(self):
        rows = generality.attempt(self.comparison, "transpose_k4_s2")
        self.assertEqual(self.timed[-1], "max_autotune")
        self.assertEqual(rows["fp32"]["times_best"], 1.5)
        self.assertEqual(rows["fp32"]["times_compile"], 2.0)

    def test_an_error_is_the_row_of_both_grades(self):
        def fails(*arguments):
            raise RuntimeError("no such device")
        sys.modules["side_by_side"].first_results = fails
        row = generality.attempt(self.comparison, "conv_s2")
        self.assertEqual(row, {"ok": False,
                               "error": "RuntimeError: no such device"})
        for grade in generality.GRADES:
            self.assertEqual(generality.of_grade({"conv_s2": row}, grade),
                             {"conv_s2": row})


if __name__ == "__main__":
    unittest.main()
