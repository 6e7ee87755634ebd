"""Judges plans at random, launches them again and times them.

    gpu_random_worker.py SOCKET CASES.json RESULTS.jsonl DEADLINE_S

Appends one JSON line for each case, as gpu_worker.py does: its name, each
output's verdict, launches, milliseconds, how much longer eager PyTorch takes,
and what was predicted.
"""

import dataclasses
import json
import sys
import time

import gpu_daemon  # extends sys.path

import torch

import gpu_cases
import gpu_random
import gpu_repeat
import gpu_repeat_worker
import gpu_time
import gpu_worker
import kiln
import side_by_side
import torch_plan
from kiln.messages import schema
from kiln.plan_proto import plan_message

_LAUNCHES = 30
_TIMING_S = 0.02
# What models predict is of it (docs/schedules.md).
_TARGET = "h100-sxm"


class Runner(gpu_repeat_worker.Runner):
    """Of plans that are not only launched again."""

    def run(self, case, compiled, seed):
        plan = gpu_cases.read_plan(case)
        tensors = gpu_cases.inputs(case, plan, seed, torch)
        kernel = kiln.TorchKernel(compiled)
        facts = judge(plan, tensors, kernel)
        if "error" not in facts:
            facts.update(self._repeat(tensors, kernel))
        if "error" not in facts:
            facts.update(self._time(plan, tensors, kernel))
            facts["predicted_us"] = self._predict(case.text)
        return facts

    @staticmethod
    def _repeat(tensors, kernel):
        repetition = gpu_repeat_worker.Repetition(kernel, tensors)
        return gpu_repeat.facts(repetition.differing(_LAUNCHES))

    @staticmethod
    def _time(plan, tensors, kernel):
        outputs = kernel.empty_outputs()
        function = torch_plan.as_function(plan)
        with torch.no_grad(), side_by_side.tf32(True):
            eager = _graph_time(lambda: function(*tensors))
        ms = _graph_time(lambda: kernel.launch(tensors, outputs,
                                               parameter_version=1))
        return {"ms": ms, "eager_ms": eager, "times_eager": eager / ms}

    def _predict(self, text):
        request = schema().ExplainRequest(
            plan=plan_message(text), target=_TARGET, include_schedule=True)
        return gpu_random.predicted_us(
            self._client.call("Compiler", "Explain", request))


def judge(plan, tensors, kernel):
    """Each output's verdict, and "error" if anything is wrong."""
    with side_by_side.tf32(plan.grade == "tf32"):
        truth = gpu_worker.Truth(plan, tensors)
    pairs = [gpu_worker.guarded(output, float("nan"))
             for output in kernel.empty_outputs()]
    kernel.launch(tensors, [inner for inner, _ in pairs])
    torch.cuda.synchronize()
    facts = {}
    for index, (inner, whole) in enumerate(pairs):
        verdict = truth.judge(index, inner)
        facts[f"output{index}"] = dataclasses.asdict(verdict)
        if not verdict.ok:
            facts["error"] = f"output {index}: {verdict.why}"
        elif not gpu_worker.guards_hold(whole, float("nan")):
            facts["error"] = f"output {index}: wrote outside"
    return facts


def _graph_time(run):
    """The median in milliseconds."""
    side_by_side.warm_up_beside([run])
    return gpu_time.measure([gpu_time.graph_of(run)], _TIMING_S)["median"]


def main():
    socket, cases_path, results_path, deadline = sys.argv[1:]
    give_up = time.monotonic() + float(deadline)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    with open(cases_path) as file:
        cases = [gpu_random.case_named(name) for name in json.load(file)]
    runner = Runner(socket)
    # Nothing is timed while plans are compiled: below they come from the cache.
    for _ in gpu_worker.compile_all(runner, cases):
        if time.monotonic() > give_up:
            break
    gpu_worker.work(runner, cases, results_path, give_up)


if __name__ == "__main__":
    main()
