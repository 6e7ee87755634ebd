"""Launches plans many times on the same inputs and counts the launches whose
results differ from the first one's.

    gpu_repeat_worker.py SOCKET CASES.json RESULTS.jsonl DEADLINE_S

Appends one JSON line for each case, as gpu_worker.py does: its name and
gpu_repeat.facts().
"""

import json
import sys
import time

import gpu_daemon  # extends sys.path

import torch

import gpu_cases
import gpu_repeat
import gpu_worker
import kiln

_BITS = {2: torch.int16, 4: torch.int32}


def bits(tensor):
    """The elements as integers: NaNs equal themselves."""
    return tensor.view(_BITS[tensor.element_size()])


class Repetition:
    """Launches of one plan beside a first one. What the first one and the
    others write over differs, so an element that no launch writes does, too."""

    def __init__(self, kernel, tensors):
        self._kernel, self._tensors = kernel, tensors
        self._first = [output.fill_(float("nan"))
                       for output in kernel.empty_outputs()]
        self._again = [output.fill_(77.0) for output in kernel.empty_outputs()]
        self._launch(self._first)

    def _launch(self, outputs):
        # Parameters are prepared once, as in use.
        self._kernel.launch(self._tensors, outputs, parameter_version=1)

    def differing(self, count):
        """Of each of `count` more launches, how many elements differ. Waits
        once, behind all of them: launches follow each other quickly."""
        found = torch.zeros(count, dtype=torch.int64, device="cuda")
        for index in range(count):
            self._launch(self._again)
            for first, again in zip(self._first, self._again):
                found[index] += torch.count_nonzero(bits(again) != bits(first))
        return found.tolist()


class Runner:
    """As gpu_worker.work() asks for it."""

    def __init__(self, socket):
        self._client = kiln.connect(socket, auto_start=False)
        self._target = kiln.client.current_target()

    def compile(self, case):
        return self._client.compile(case.text, self._target)

    def run(self, case, compiled, seed):
        tensors = gpu_cases.inputs(case, gpu_cases.read_plan(case), seed, torch)
        repetition = Repetition(kiln.TorchKernel(compiled), tensors)
        torch.cuda.synchronize()
        begin = time.monotonic()
        found = repetition.differing(gpu_repeat.TRIALS)
        more = gpu_repeat.launches_after(time.monotonic() - begin)
        return gpu_repeat.facts(found + repetition.differing(more))


def main():
    socket, cases_path, results_path, deadline = sys.argv[1:]
    give_up = time.monotonic() + float(deadline)
    with open(cases_path) as file:
        names = set(json.load(file))
    cases = [case for case in gpu_repeat.cases() if case.name in names]
    gpu_worker.work(Runner(socket), cases, results_path, give_up)


if __name__ == "__main__":
    main()
