"""Small plans under compute-sanitizer: of every template from Python, and the
chains by `kiln run` with both ways to launch.

    gpu_sanitize.py SOCKET CASE...     what runs under it
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import time

import gpu_daemon  # extends sys.path
import gpu_templates

TOOLS = ("memcheck", "racecheck", "synccheck")
# Driver calls that fail by design, as reading the size of a parameter past the
# last one, are no memory errors; calls that must succeed are checked by Kiln.
OPTIONS = {"memcheck": ("--report-api-errors", "no")}
AT_ONCE = 6
# One of each template of the plain path, and the chains; these also by eager
# kernels.
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


def commands(daemon):
    """{name: what to run}."""
    python = [sys.executable, __file__, daemon.socket]
    found = {"Python": [*python, *CASES],
             "every template": [*python, *(f"template/{name}" for name in
                                           gpu_templates.PLANS)]}
    plans = sorted((gpu_daemon.ROOT / "examples" / "plans").glob("*.kiln"))
    for plan in plans:
        run_plan = [str(gpu_daemon.BUNDLE / "bin" / "kiln"), "run", str(plan),
                    "--device", "cuda:0", "--verify"]
        found[f"kiln run {plan.stem}"] = run_plan
        found[f"kiln run --client-side {plan.stem}"] = [
            *run_plan, "--client-side"]
    return found


def run(daemon, scratch, budget_s):
    """{tool and command: "" or the end of its report}. Several at a time, for
    each of them mostly starts."""
    give_up = time.monotonic() + budget_s
    runs = [(tool, name, command) for tool in TOOLS
            for name, command in commands(daemon).items()]

    def complaint(index):
        tool, _, command = runs[index]
        seconds = give_up - time.monotonic()
        if seconds <= 5:
            return "no time was left"
        return _complaint(daemon, tool, command,
                          scratch / f"sanitize-{index}.log", seconds)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        complaints = list(pool.map(complaint, range(len(runs))))
    return {f"{tool}, {name}": found
            for (tool, name, _), found in zip(runs, complaints)}


def _complaint(daemon, tool, command, log, timeout_s):
    """Empty if `command` succeeds under `tool` and the tool finds nothing."""
    with open(log, "wb") as output:
        try:
            status = subprocess.run(
                [_sanitizer(), "--tool", tool, "--error-exitcode", "9",
                 *OPTIONS.get(tool, ()), *command], stdout=output,
                stderr=output, timeout=timeout_s,
                env={**os.environ, "KILN_SOCKET": daemon.socket}).returncode
        except subprocess.TimeoutExpired:
            status = "not finished in time"
    text = log.read_text(errors="replace")
    clean = (status == 0 and
             ("ERROR SUMMARY: 0 errors" in text or
              "RACECHECK SUMMARY: 0 hazards" in text))
    return "" if clean else f"status {status}: {text[-600:]}"


def main():
    socket, *names = sys.argv[1:]
    import torch

    import gpu_cases
    import kiln

    client = kiln.connect(socket, auto_start=False)
    for case in gpu_cases.golden_cases() + gpu_cases.template_cases():
        if case.name not in names:
            continue
        plan = gpu_cases.read_plan(case)
        tensors = gpu_cases.inputs(case, plan, 1, torch)
        variants = ("", "eager") if case.name in CASES else ("",)
        for variant in variants:
            kernel = kiln.TorchKernel(client.compile(case.text,
                                                     variant=variant))
            for _ in range(2):
                kernel(*tensors)
        torch.cuda.synchronize()
        names.remove(case.name)
    assert not names, f"no such cases: {names}"
    print("ran all")


if __name__ == "__main__":
    main()
