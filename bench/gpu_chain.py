"""One chain at full size: time and error of Kiln beside PyTorch.

    gpu_chain.py SOCKET P1 RESULT.json [--max-autotune]
"""

import json
import sys
import time

import gpu_daemon  # extends sys.path

import torch

import accuracy
import chains
import gpu_cases
import gpu_time
import kiln
import torch_plan
from kiln import plan_text

_SLICE = 8  # images evaluated in double at once


def _tf32(allowed):
    torch.backends.cudnn.allow_tf32 = allowed


def _slices(plan, tensors):
    """Inputs of a few images at a time: images are independent of each other
    in all four chains."""
    images = tensors[0].shape[0]
    for begin in range(0, images, _SLICE):
        end = min(begin + _SLICE, images)
        yield begin, end, [tensors[0][begin:end]] + tensors[1:]


def errors(plan, tensors, output):
    """The worst verdict over slices."""
    worst = None
    for begin, end, part in _slices(plan, tensors):
        (reference,) = torch_plan.evaluate(plan, part, torch.float64)
        _tf32(False)
        (eager,) = torch_plan.evaluate(plan, part)
        _tf32(True)
        verdict = accuracy.judge(output[begin:end], reference, eager)
        if (worst is None or (worst.ok and not verdict.ok) or
                (worst.ok == verdict.ok and verdict.norm > worst.norm)):
            worst = verdict
    return worst


def time_torch(plan, tensors, mode):
    """(milliseconds, seconds of compiling) of eager or torch.compile."""
    function = torch_plan.as_function(plan)
    begin = time.monotonic()
    if mode != "eager":
        torch._dynamo.reset()
        function = torch.compile(
            function, mode=None if mode == "compile" else mode)
    with torch.no_grad():
        function(*tensors)
        torch.cuda.synchronize()
        seconds = time.monotonic() - begin
        return gpu_time.milliseconds(lambda: function(*tensors)), seconds


def main():
    socket, name, path = sys.argv[1:4]
    text = chains.CHAINS[name]
    plan = plan_text.parse(text)
    client = kiln.connect(socket, auto_start=False)
    cold = client.compile(text)
    warm = client.compile(text)
    tensors = gpu_cases.inputs(gpu_cases.Case(name, text), plan,
                               time.time_ns() % 2**31, torch)
    result = {"chain": name, "key": cold.key, "source": cold.source,
              "cold_compile_ms": cold.timing.total_us / 1e3,
              "nvrtc_ms": cold.timing.nvrtc_us / 1e3,
              "hit_us": warm.timing.total_us}

    kernel = kiln.TorchKernel(cold)
    outputs = kernel.empty_outputs()
    outputs[0].fill_(float("nan"))
    kernel.launch(tensors, outputs, parameter_version=1)
    torch.cuda.synchronize()
    verdict = errors(plan, tensors, outputs[0])
    result.update(ok=verdict.ok, why=verdict.why, norm=verdict.norm,
                  norm_torch_fp32=verdict.norm_torch, worst=verdict.worst,
                  worst_torch_fp32=verdict.worst_torch,
                  variant=kernel.variant_index)

    def run():
        kernel.launch(tensors, outputs, parameter_version=1)
    result["kiln_launch_ms"] = gpu_time.milliseconds(run)
    result["kiln_ms"] = gpu_time.milliseconds(gpu_time.graph_of(run))
    with client.attach() as session:
        response = session.execute(cold, tensors, outputs,
                                   parameter_version=1)
        times = [session.execute(cold, tensors, outputs, parameter_version=1)
                 for _ in range(7)]
        result["first_execute_us"] = response.total_us
        result["service_us"] = sorted(t.execute_us for t in times)[3]
    _write(path, result)  # what follows may run out of time
    modes = {"eager": "eager", "torch_compile": "compile"}
    if "--max-autotune" in sys.argv:
        modes["max-autotune"] = "max-autotune"
    for name, mode in modes.items():
        result[f"{name}_ms"], result[f"{name}_s"] = time_torch(plan, tensors,
                                                               mode)
        _write(path, result)


def _write(path, result):
    with open(path, "w") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
