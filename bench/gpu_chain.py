"""One chain at full size: time and error of Kiln beside PyTorch.

    gpu_chain.py SOCKET P1 GRADE RESULT.json [--max-autotune]

Goes on with what RESULT.json lacks.
"""

import json
import os
import sys
import time

import gpu_daemon  # extends sys.path

import torch

import accuracy
import chains
import gpu_cases
import gpu_time
import kiln
import side_by_side
import torch_plan
from kiln import plan_text

_SLICE = 8  # images evaluated in double at once


def _slices(plan, tensors):
    """Inputs of a few images at a time: images are independent of each other
    in all four chains."""
    images = tensors[0].shape[0]
    for begin in range(0, images, _SLICE):
        end = min(begin + _SLICE, images)
        yield begin, end, [tensors[0][begin:end]] + tensors[1:]


def errors(plan, tensors, output, grade):
    """The worst verdict over slices, beside PyTorch's error with TF32 off, or
    allowed for the grade tf32."""
    worst = None
    for begin, end, part in _slices(plan, tensors):
        (reference,) = torch_plan.evaluate(plan, part, torch.float64)
        with side_by_side.tf32(grade == "tf32"):
            (eager,) = torch_plan.evaluate(plan, part)
        verdict = accuracy.judge(output[begin:end], reference, eager)
        if not verdict.ok and grade == "tf32":
            (rounded,) = torch_plan.evaluate(plan, part, torch.float64,
                                             tf32_operands=True)
            verdict = accuracy.judge_by_rounding(verdict, output[begin:end],
                                                 reference, rounded)
        if (worst is None or (worst.ok and not verdict.ok) or
                (worst.ok == verdict.ok and verdict.norm > worst.norm)):
            worst = verdict
    return worst


class Chain:
    """The steps of the measurement; each adds to `result`."""

    def __init__(self, socket, name, grade):
        self.client = kiln.connect(socket, auto_start=False)
        self.text = chains.CHAINS[name]
        self.plan = plan_text.parse(self.text)
        self.grade = grade
        self.tensors = gpu_cases.inputs(gpu_cases.Case(name, self.text),
                                        self.plan, time.time_ns() % 2**31,
                                        torch)
        self.result = {"chain": name, "grade": grade, "times_ms": {},
                       "first_result_s": {}}

    def compile(self):
        self.result["eager_kernels_ms"] = side_by_side.compile_eager_kernels(
            self.client)
        cold, self.first, self.outputs, seconds = side_by_side.first_results(
            self.client, self.text, self.tensors, self.grade)
        self.kernel = kiln.TorchKernel(cold)
        self.result["first_result_s"].update(seconds)
        warm = self.client.compile(self.text, grade=self.grade)
        self.compiled = cold
        self.result.update(
            key=cold.key, source=cold.source,
            cold_compile_ms=cold.timing.total_us / 1e3,
            nvrtc_ms=cold.timing.nvrtc_us / 1e3, hit_us=warm.timing.total_us,
            variant=self.kernel.variant_index)

    def judge(self):
        self.outputs[0].fill_(float("nan"))
        self.kernel.launch(self.tensors, self.outputs, parameter_version=1)
        torch.cuda.synchronize()
        verdict = errors(self.plan, self.tensors, self.outputs[0], self.grade)
        first = errors(self.plan, self.tensors, self.first.pop(), self.grade)
        if not first.ok:
            verdict = first
        self.result.update(
            ok=verdict.ok, why=verdict.why, norm=verdict.norm,
            norm_torch=verdict.norm_torch, worst=verdict.worst,
            worst_torch=verdict.worst_torch,
            norm_ratio=verdict.norm / max(verdict.norm_torch, 1e-30))
        torch.cuda.empty_cache()

    def time_kiln(self):
        with self.client.attach() as session:
            def execute():
                return session.execute(self.compiled, self.tensors,
                                       self.outputs, parameter_version=1)
            self.result["first_execute_us"] = execute().total_us
            times = sorted(execute().execute_us for _ in range(7))
            self.result["service_us"] = times[3]
        self.sets = side_by_side.rotated(self.plan, self.tensors)
        times = side_by_side.time_kiln(self.kernel, self.sets)
        self.result["times_ms"].update(times)
        copy_rate = gpu_time.copy_bytes_per_s()
        self.result["copy_bytes_per_s"] = copy_rate
        self.result.update(side_by_side.floor_facts(
            self.plan, self.tensors, self.outputs, copy_rate,
            times["kiln"]["median"]))

    def time_torch(self, mode):
        times, seconds = side_by_side.time_torch(self.plan, self.sets, mode)
        self.result["times_ms"][mode] = times
        self.result["first_result_s"][mode] = seconds


def modes(grade, max_autotune):
    """Of PyTorch. Without TF32 only the grade that does without has rivals."""
    names = ["eager", "torch_compile"]
    if grade == "fp32":
        names += ["eager_no_tf32", "torch_compile_no_tf32"]
    return names + ["max_autotune"] * max_autotune


def main():
    socket, name, grade, path = sys.argv[1:5]
    earlier = {}
    if os.path.exists(path):
        with open(path) as file:
            earlier = json.load(file)
    chain = Chain(socket, name, grade)
    chain.compile()
    chain.judge()
    chain.time_kiln()
    for mode in modes(grade, "--max-autotune" in sys.argv):
        if mode in earlier.get("times_ms", {}):
            for facts in ("times_ms", "first_result_s"):
                chain.result[facts][mode] = earlier[facts][mode]
            continue
        _write(path, chain.result)  # what follows may run out of time
        chain.time_torch(mode)
    chain.result["complete"] = True
    _write(path, chain.result)


def _write(path, result):
    with open(path, "w") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
