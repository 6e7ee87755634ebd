"""Kiln beside PyTorch on the plans of generality_rows.py.

    generality.py SOCKET ROWS.json RESULTS.jsonl DEADLINE_S

appends one JSON line for each row, {"name", "fp32": facts, "tf32": facts} or
{"name", "ok", "error"}; scripts/gpu_check calls it so, starts it again behind a
row that ended it, and prints run()'s table.
"""

import dataclasses
import json
import os
import sys
import tempfile
import time

import gpu_daemon  # extends sys.path

import generality_rows
import generality_summary
from generality_summary import GRADES, of_grade
import gpu_matrix
import gpu_parts
import gpu_report

# A row takes at most this long, with max-autotune.
_ROW_S = 30
_WARM_UP = "input x: f32[4,4,32,32]\ny = tanh(x)\noutput y\n"


def names_of(part):
    """A quarter of the rows, the slow ones spread evenly."""
    slow = list(generality_rows.MAX_AUTOTUNE)
    ordered = slow + [n for n in generality_rows.ROWS if n not in slow]
    return ordered[part::gpu_parts.GENERALITY_PARTS]


def run(part, scratch, budget_s):
    """(lines, ok, report) of the part "generality-N"."""
    names = names_of(int(part.split("-")[1]))
    with gpu_daemon.running() as daemon:
        results = gpu_matrix.run(daemon, names, scratch, budget_s - _ROW_S,
                                 "generality.py")
        missing = [name for name in names if name not in results]
        wrong = [name for grade in GRADES
                 for name, row in of_grade(results, grade).items()
                 if not row.get("ok")]
        lines = [line for grade in GRADES
                 for line in table(of_grade(results, grade), grade)]
        lines += [f"not run, out of time: {name}" for name in missing]
        ok = not missing and not wrong
        log = scratch / "worker.log"
        if not results and log.exists():
            lines.insert(0, log.read_text()[-1500:])
        with daemon.connect() as client:
            report = gpu_report.report(part, client, ok, results)
    report["summary"] = {
        grade: generality_summary.summary(of_grade(results, grade))
        for grade in GRADES}
    return lines, ok, report


def table(results, grade):
    """A line per row, milliseconds, then what they say together."""
    lines = [f"{'row, ' + grade:27}{'kiln':>8}{'eager':>8}{'compile':>9}"
             f"{'autotune':>9}"
             f"{'floor':>8}{'of it':>7}{'TB/s':>6}{'TFLOP/s':>9}{'x best':>8}"
             f"{'x comp.':>8}{'err':>6}{'first s: kiln':>15}{'fast':>6}"
             f"{'compile':>8}"]
    for name, row in results.items():
        if "times_ms" not in row:
            lines.append(f"{name:27} {row.get('error', 'no result')[:120]}")
            continue
        t = {key: value["median"] for key, value in row["times_ms"].items()}
        autotune = (f"{t['max_autotune']:9.3f}" if "max_autotune" in t
                    else f"{'':9}")
        first = row["first_result_s"]
        lines.append(
            f"{name:27}{t['kiln']:8.3f}{t['eager']:8.3f}"
            f"{t['torch_compile']:9.3f}{autotune}{row['floor_ms']:8.3f}"
            f"{row['of_floor']:7.0%}{row['bytes_per_s'] / 1e12:6.2f}"
            f"{row['flops_per_s'] / 1e12:9.1f}"
            f"{row['times_best']:8.2f}{row['times_compile']:8.2f}"
            f"{row['norm_ratio']:6.2f}{first['kiln']:15.2f}"
            f"{first['kiln_fast']:6.2f}{first['torch_compile']:8.2f}")
        if not row["ok"]:
            lines.append(f"    WRONG: {row['error']}"[:200])
    found = generality_summary.summary(results)
    lines.append(
        f"{found['rows']} rows, {found['wrong']} wrong; geometric mean "
        f"{found['times_compile']:.2f} x torch.compile, "
        f"{found['times_best']:.2f} x the best; first result "
        f"{found['first_result']:.1f} x sooner (at least "
        f"{found['first_result_least']:.1f}), of the fast kernels "
        f"{found['fast_result']:.1f} x, beside torch.compile's start-up "
        f"of {found['torch_startup_s']:.1f} s; below 1.0 x the best: "
        f"{', '.join(found['below_best']) or 'none'}")
    return lines


class Comparison:
    """Measures rows in this process."""

    def __init__(self, socket):
        import gpu_time
        import kiln

        self.client = kiln.connect(socket, auto_start=False)
        self.copy_rate = gpu_time.copy_bytes_per_s()
        self._warm_up()

    def _warm_up(self):
        """What only the first plan of a process pays for, on both sides."""
        import torch

        import side_by_side
        from kiln import plan_text

        x = torch.randn(4, 4, 32, 32, device="cuda")
        side_by_side.first_results(self.client, _WARM_UP, [x], "fp32")
        plan = plan_text.parse(_WARM_UP)
        _, self.startup_s = side_by_side.time_torch(plan, [[x]],
                                                    "torch_compile")
        side_by_side.time_torch(plan, [[x]], "max_autotune")

    def measure(self, name):
        """{grade: facts} of one row: PyTorch is timed once, as it comes, beside
        both grades of Kiln."""
        import torch

        import gpu_cases
        import side_by_side
        from kiln import plan_text

        text = generality_rows.plan_texts()[name]
        plan = plan_text.parse(text)
        tensors = gpu_cases.inputs(gpu_cases.Case(name, text), plan,
                                   time.time_ns() % 2**31, torch)
        sets = side_by_side.rotated(plan, tensors)
        rows = {grade: self._measure_kiln(text, plan, tensors, sets, grade)
                for grade in GRADES}
        modes = ["eager", "torch_compile"]
        if name in generality_rows.MAX_AUTOTUNE:
            modes.append("max_autotune")
        for mode in modes:
            times, seconds = side_by_side.time_torch(plan, sets, mode)
            for row in rows.values():
                row["times_ms"][mode] = times
                row["first_result_s"][mode] = seconds
        for row in rows.values():
            ms = {mode: times["median"]
                  for mode, times in row["times_ms"].items()}
            row["times_compile"] = ms["torch_compile"] / ms["kiln"]
            row["times_best"] = min(ms[mode] for mode in modes) / ms["kiln"]
        return rows

    def _measure_kiln(self, text, plan, tensors, sets, grade):
        """The facts of one grade but for PyTorch's times."""
        import kiln
        import side_by_side

        compiled, first, outputs, first_s = side_by_side.first_results(
            self.client, text, tensors, grade)
        kernel = kiln.TorchKernel(compiled)
        row = {"plan": text,
               **self._judge(plan, tensors, kernel, first, outputs, grade),
               "kernels": kernel.launch_steps,
               "prepare_kernels": kernel.prepare_steps,
               "compile_ms": compiled.timing.total_us / 1e3,
               "nvrtc_ms": compiled.timing.nvrtc_us / 1e3,
               "source": compiled.source,
               "first_result_s": first_s,
               "torch_startup_s": self.startup_s,
               "times_ms": side_by_side.time_kiln(kernel, sets)}
        row.update(side_by_side.floor_facts(
            plan, tensors, outputs, self.copy_rate,
            row["times_ms"]["kiln"]["median"]))
        return row

    def _judge(self, plan, tensors, kernel, first, outputs, grade):
        """"ok", "error" and the worst output's errors: of the fast kernels,
        launched once more, unless the first ones are wrong."""
        import torch

        import gpu_worker
        import side_by_side

        for output in outputs:
            output.fill_(float("nan"))
        kernel.launch(tensors, outputs, parameter_version=1)
        torch.cuda.synchronize()
        with side_by_side.tf32(grade == "tf32"):
            truth = gpu_worker.Truth(plan, tensors, grade)
            verdicts = [truth.judge(index, output)
                        for index, output in enumerate(outputs)]
            verdicts += [verdict for index, output in enumerate(first)
                         if not (verdict := truth.judge(index, output)).ok]
        worst = max(verdicts, key=lambda v: (not v.ok, v.norm))
        facts = dataclasses.asdict(worst)
        facts["error"] = facts.pop("why") if not worst.ok else ""
        facts["norm_ratio"] = worst.norm / max(worst.norm_torch, 1e-30)
        return facts


def attempt(comparison, name):
    """{grade: facts} of a row, or its error, whatever happens in it."""
    import torch

    try:
        return comparison.measure(name)
    except Exception as failure:
        torch.cuda.empty_cache()
        return {"ok": False,
                "error": f"{type(failure).__name__}: {failure}"[:500]}


def main():
    socket, rows_path, results_path, deadline = sys.argv[1:]
    give_up = time.monotonic() + float(deadline)
    # Compiled once before, torch.compile would answer from its own cache.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        comparison = Comparison(socket)
        with open(rows_path) as file:
            names = json.load(file)
        with open(results_path, "a", buffering=1) as results:
            for name in names:
                if time.monotonic() > give_up:
                    break
                results.write(json.dumps({"start": name}) + "\n")
                row = {"name": name, **attempt(comparison, name)}
                results.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
