"""A chain at full size, in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile

import gpu_daemon
import gpu_report

COLUMNS = ("kiln", "kiln_stream", "prepare", "eager", "torch_compile",
           "max_autotune", "eager_no_tf32", "torch_compile_no_tf32")


def run(part, scratch, budget_s, grade, max_autotune):
    """(lines, ok, report) of `part`, as "bench-P1"."""
    name = part.split("-")[1]
    results = {}
    with gpu_daemon.running() as daemon:
        complaint = _run_chain(daemon, name, scratch, grade, max_autotune,
                               budget_s)
        path = scratch / f"chain-{name}.json"
        if path.exists():
            results[name] = json.loads(path.read_text())
        ok = not complaint and all(r["ok"] for r in results.values())
        with daemon.connect() as client:
            report = gpu_report.report(part, client, ok, results)
    report["grade"] = grade
    lines = [f"{name}: {complaint}"] if complaint else []
    return lines + _table(results), ok, report


def _run_chain(daemon, name, scratch, grade, max_autotune, timeout_s):
    """Empty, or why the chain is incomplete."""
    log = scratch / "chain.log"
    command = [sys.executable,
               str(gpu_daemon.ROOT / "bench" / "gpu_chain.py"), daemon.socket,
               name, grade, str(scratch / f"chain-{name}.json")]
    # Compiled once before, torch.compile would answer from its own cache.
    with tempfile.TemporaryDirectory() as cache, open(log, "w") as output:
        try:
            status = subprocess.run(
                command + ["--max-autotune"] * max_autotune, stdout=output,
                stderr=output, timeout=max(timeout_s, 1),
                env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
                ).returncode
        except subprocess.TimeoutExpired:
            return "out of time; run this part again to go on"
    return "" if status == 0 else log.read_text()[-1500:]


def _table(results):
    """Milliseconds: median, and the tenth and ninetieth percentile."""
    lines = []
    for name, result in results.items():
        verdict = "ok" if result["ok"] else result["why"]
        lines.append(
            f"{name} {result['grade']}: {verdict}, error "
            f"{result['norm']:.3g}, {result['norm_ratio']:.2f} of PyTorch's")
        times = result["times_ms"]
        if "kiln" not in times:
            continue
        kiln_ms = times["kiln"]["median"]
        lines.append(
            f"  floor {result['floor_ms']:.4g} ms (a copy moves "
            f"{result['copy_bytes_per_s'] / 1e12:.2f} TB/s), "
            f"{result['of_floor']:.1%} of it; "
            f"{result['bytes_per_s'] / 1e12:.2f} TB/s, "
            f"{result['flops_per_s'] / 1e12:.1f} TFLOP/s")
        for column in COLUMNS:
            if column in times:
                t = times[column]
                first = result["first_result_s"].get(column)
                lines.append(
                    f"  {column:22}{t['median']:9.4g}  [{t['p10']:.4g}, "
                    f"{t['p90']:.4g}]  {t['median'] / kiln_ms:6.2f} x kiln" +
                    (f"  first result {first:.3g} s" if first else ""))
    return lines
