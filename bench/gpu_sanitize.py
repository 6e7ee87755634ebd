"""A few small plans under compute-sanitizer.

    gpu_sanitize.py SOCKET CASE...     what runs under it
"""

import shutil
import subprocess
import sys

import gpu_daemon  # extends sys.path

TOOLS = ("memcheck", "racecheck", "synccheck")
# Driver calls that fail by design, as reading the size of a parameter past the
# last one, are no memory errors; calls that must succeed are checked by Kiln.
OPTIONS = {"memcheck": ("--report-api-errors", "no")}
# One of each template of the plain path, and the chains.
CASES = (
    "golden/conv2d_stride_2", "golden/chain_p1_group_norm_f32",
    "golden/chain_p2_conv_norm_logsumexp_f32",
    "golden/chain_p3_conv_norm_pool_f32",
    "golden/chain_p4_conv_transpose_gelu_norm_f32",
    "golden/softmax_dim_0_bf16", "golden/avg_pool2d_ceil_5_k3_s2_p1",
)


def _sanitizer():
    found = shutil.which("compute-sanitizer")
    return found or "/usr/local/cuda/bin/compute-sanitizer"


def run(daemon, scratch, budget_s):
    """{tool: "" or the end of its report}."""
    failures = {}
    for tool in TOOLS:
        log = scratch / f"{tool}.log"
        with open(log, "wb") as output:
            try:
                status = subprocess.run(
                    [_sanitizer(), "--tool", tool, "--error-exitcode", "9",
                     *OPTIONS.get(tool, ()), sys.executable, __file__,
                     daemon.socket, *CASES], stdout=output, stderr=output,
                    timeout=budget_s / len(TOOLS)).returncode
            except subprocess.TimeoutExpired:
                status = "not finished in time"
        text = log.read_text(errors="replace")
        clean = status == 0 and "ran all" in text
        failures[tool] = "" if clean else f"status {status}: {text[-600:]}"
    return failures


def main():
    socket, *names = sys.argv[1:]
    import torch

    import gpu_cases
    import kiln

    client = kiln.connect(socket, auto_start=False)
    for case in gpu_cases.golden_cases():
        if case.name not in names:
            continue
        plan = gpu_cases.read_plan(case)
        kernel = kiln.TorchKernel(client.compile(case.text))
        tensors = gpu_cases.inputs(case, plan, 1, torch)
        for _ in range(2):
            kernel(*tensors)
        torch.cuda.synchronize()
        names.remove(case.name)
    assert not names, f"no such cases: {names}"
    print("ran all")


if __name__ == "__main__":
    main()
