"""A few small plans under compute-sanitizer, one process each.

    gpu_sanitize.py SOCKET CASE
"""

import shutil
import subprocess
import sys

import gpu_daemon

TOOLS = ("memcheck", "racecheck", "synccheck")
# One of each template of the plain path, and the chains.
CASES = (
    "golden/conv2d_stride_2", "golden/chain_p1_group_norm_f32",
    "golden/chain_p2_conv_norm_logsumexp_f32",
    "golden/chain_p3_conv_norm_pool_f32",
    "golden/chain_p4_conv_transpose_gelu_norm_f32",
)


def _sanitizer():
    found = shutil.which("compute-sanitizer")
    return found or "/usr/local/cuda/bin/compute-sanitizer"


def run(daemon, scratch):
    """{"CASE TOOL": "" or the end of the report}."""
    failures = {}
    for case in CASES:
        for tool in TOOLS:
            done = subprocess.run(
                [_sanitizer(), "--tool", tool, "--error-exitcode", "9",
                 sys.executable, __file__, daemon.socket, case],
                capture_output=True, text=True, timeout=240)
            text = done.stdout + done.stderr
            (scratch / "sanitizer.log").open("a").write(
                f"#### {case} {tool}: {done.returncode}\n{text[-4000:]}\n")
            failures[f"{case} {tool}"] = (
                "" if done.returncode == 0 else text[-300:])
    return failures


def main():
    socket, name = sys.argv[1:]
    import torch

    import gpu_cases
    import kiln

    (case,) = [c for c in gpu_cases.golden_cases() if c.name == name]
    plan = gpu_cases.read_plan(case)
    compiled = kiln.connect(socket, auto_start=False).compile(case.text)
    tensors = gpu_cases.inputs(case, plan, 1, torch)
    kernel = kiln.TorchKernel(compiled)
    for _ in range(2):
        kernel(*tensors)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
