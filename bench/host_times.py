#!/usr/bin/env python3
"""How long compiling takes on this host, and what a cache hit costs. Needs no
GPU, and Python alone; the host should be idle.

  bench/host_times.py            uses build, writes build-gpu/out/host.json
  bench/host_times.py --build DIR --out DIR --repeats 15

A cold compile is asked of a private daemon with one warm worker whose cache was
emptied just before. Workers see no files, so NVRTC keeps no cache either.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import host_table

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLANS = ROOT / "examples" / "plans"
_WARM_UP = "input x: f32[64]\ny = relu(x)\noutput y\n"
# (plan, target), as `kiln compile` knows them; sm_75 takes the plain path.
CASES = (
    ("p1_group_norm", "t4"),
    ("p2_conv_norm_logsumexp", "t4"),
    ("p1_group_norm", "a100"),
    ("p2_conv_norm_logsumexp", "a100"),
    ("p1_group_norm", "h100-sxm"),
    ("p2_conv_norm_logsumexp", "h100-sxm"),
    ("p3_conv_norm_pool", "h100-sxm"),
    ("p4_conv_transpose_gelu_norm", "h100-sxm"),
    ("full/p1_group_norm", "h100-sxm"),
    ("full/p2_conv_norm_logsumexp", "h100-sxm"),
    ("full/p3_conv_norm_pool", "h100-sxm"),
    ("full/p4_conv_transpose_gelu_norm", "h100-sxm"),
)


class Daemon:
    """The command line `kiln` and its private kilnd with one worker."""

    def __init__(self, bin_folder, folder):
        self._kiln, self._folder = bin_folder / "kiln", folder
        self._socket = folder / "kilnd.sock"
        self.process = subprocess.Popen(
            [bin_folder / "kilnd", "--socket", self._socket, "--cache-dir",
             folder / "cache", "--workers", "1", "--log-file", folder / "log"])
        give_up = time.monotonic() + 20
        while not self._socket.exists():
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError("kilnd does not start")
            time.sleep(0.02)

    def kiln(self, *arguments, plan_text=None):
        """The JSON document that a command prints."""
        done = subprocess.run(
            [self._kiln, "--socket", self._socket, "--no-start", "--json",
             *arguments], input=plan_text, capture_output=True, text=True,
            check=False)
        if done.returncode != 0:
            raise RuntimeError(f"kiln {' '.join(map(str, arguments))}: "
                               f"{done.stderr or done.stdout}")
        return json.loads(done.stdout)

    def warm_up(self):
        self.kiln("compile", "-", "--target", "a100", plan_text=_WARM_UP)

    def compile_cold(self, plan, target):
        """Its phases in microseconds."""
        self.kiln("cache", "purge", "--yes")
        (result,) = self.kiln("compile", PLANS / f"{plan}.kiln", "--target",
                              target)["results"]
        if result["source"] != "compiled":
            raise RuntimeError(f"{plan}: came from {result['source']}")
        return result["timing_us"]


@contextlib.contextmanager
def running(bin_folder):
    with tempfile.TemporaryDirectory(prefix="kiln-") as folder:
        daemon = Daemon(bin_folder, pathlib.Path(folder))
        try:
            yield daemon
        finally:
            daemon.process.terminate()
            daemon.process.wait(40)


def measure_compiles(daemon, repeats):
    """A row for each case, medians in milliseconds."""
    daemon.warm_up()
    rows = []
    for plan, target in CASES:
        timings = [daemon.compile_cold(plan, target) for _ in range(repeats)]
        rows.append({
            "plan": plan, "target": target, "repeats": repeats,
            "total_ms": _median_ms(t["total"] for t in timings),
            "outside_nvrtc_ms": _median_ms(t["total"] - t["nvrtc"]
                                           for t in timings)})
        print(f"{plan} {target}: {rows[-1]['total_ms']:.1f} ms", flush=True)
    return rows


def _median_ms(microseconds):
    return statistics.median(microseconds) / 1e3


def measure_hits(bin_folder):
    """What kiln_rpc_latency prints."""
    done = subprocess.run([bin_folder / "kiln_rpc_latency",
                           bin_folder / "kilnd"], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def host():
    """What the numbers depend on besides Kiln. `load` is of the minute before,
    in cores."""
    names = re.findall(r"^model name\s*: (.*)$",
                       pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"cpu": names[0] if names else "unknown", "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "date": datetime.date.today().isoformat()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path,
                        default=ROOT / "build-gpu" / "out")
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    bin_folder = options.build / "bin"
    report = {"part": "host", "ok": True, **host()}
    with running(bin_folder) as daemon:
        info = daemon.kiln("info")
        report["compiler"], report["nvrtc"] = (info["compiler"],
                                                info["nvrtc_version"])
        compiles = measure_compiles(daemon, options.repeats)
    report["results"] = {"compile": compiles, "hit": measure_hits(bin_folder)}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "host.json").write_text(json.dumps(report, indent=1) + "\n")
    print("\n".join(host_table.lines(report)))


if __name__ == "__main__":
    main()
