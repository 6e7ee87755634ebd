"""Prepares plans for times beside PyTorch, and takes these when told to.

    gpu_survey_worker.py SOCKET SEEDS.json NOTES.jsonl READY GIVE_UP

begins no plan after GIVE_UP of time.monotonic(), which all processes of a
machine share, makes the file READY, reads from its standard input until when
plans may be timed, and does so. Appends JSON lines to NOTES, the last of a seed
counts: {"seed", "during"} before what may end the process, then its fact, as
survey_summary.py has it.
"""

import dataclasses
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any

import gpu_daemon  # extends sys.path

import torch

import gpu_cases
import gpu_random
import gpu_random_worker
import gpu_survey
import gpu_time
import gpu_worker
import kiln
import side_by_side
import torch_plan
from survey_summary import OUT_OF_TIME

_INPUTS_SEED = 7
_WARM_UPS = 2
_TURNS = 9
# What other processes may take for the plans that they have begun, and what is
# written to empty the L2.
_LEAST_MEMORY_BYTES = 20 << 30


class _Wrong(Exception):
    """Kiln's result is."""


@dataclasses.dataclass
class _Prepared:
    seed: int
    runs: dict = dataclasses.field(default_factory=dict)  # graphs, by side
    # What graphs read and write.
    keep: list[Any] = dataclasses.field(default_factory=list)


class _Survey:

    def __init__(self, socket, notes):
        self._client = kiln.connect(socket, auto_start=False)
        self._target = kiln.client.current_target()
        self._notes = notes
        self._during = ""
        self._prepared = []

    def prepare(self, seeds, give_up):
        for seed in seeds:
            if time.monotonic() > give_up:
                self._note(seed, not_timed=OUT_OF_TIME)
            elif torch.cuda.mem_get_info()[0] < _LEAST_MEMORY_BYTES:
                self._note(seed, not_timed="not begun: too little of the "
                           "GPU's memory is free")
            else:
                self._attempt(seed, lambda: self._prepare(seed))

    def time(self, end):
        flush = gpu_time.flush_buffer()
        for prepared in self._prepared:
            if time.monotonic() > end:
                self._note(prepared.seed, not_timed=OUT_OF_TIME)
            else:
                self._attempt(prepared.seed,
                              lambda: self._time(prepared, flush))

    def _note(self, seed, **fact):
        self._notes.write(json.dumps({"seed": seed, **fact}) + "\n")

    def _begin(self, seed, what):
        self._during = what
        self._note(seed, during=what)

    def _attempt(self, seed, step):
        """Ends the process where a failure has lost its context."""
        try:
            step()
            return
        except Exception as problem:
            excused = isinstance(problem, (torch.cuda.OutOfMemoryError,
                                           gpu_worker.Refused))
            self._note(seed, **gpu_survey.failure(
                self._during, f"{type(problem).__name__}: {problem}", excused))
        if gpu_worker.context_is_lost():
            _leave(3)
        torch.cuda.empty_cache()

    def _prepare(self, seed):
        prepared = _Prepared(seed)
        cases = {grade: gpu_random.case_named(f"{grade}/{seed}")
                 for grade in gpu_random.grades_of(seed)}
        self._begin(seed, "inputs")
        plan = gpu_cases.read_plan(cases["fp32"])
        tensors = gpu_cases.inputs(cases["fp32"], plan, _INPUTS_SEED, torch)
        prepared.keep.append(tensors)
        self._begin(seed, "eager")
        self._add_torch(prepared, torch_plan.as_function(plan), tensors)
        self._begin(seed, "compile")
        # It would give up on the ninth plan of one function.
        torch._dynamo.reset()
        self._add_torch(prepared, torch.compile(
            torch_plan.as_function(plan), dynamic=False), tensors)
        for grade, case in cases.items():
            self._begin(seed, grade)
            self._add_kiln(prepared, case, tensors)
        self._begin(seed, "waiting")
        self._prepared.append(prepared)
        # References in double leave other processes little.
        torch.cuda.empty_cache()

    def _add_torch(self, prepared, function, tensors):
        """As it comes: with TF32 allowed in convolutions."""
        def run():
            return function(*tensors)
        with torch.no_grad(), side_by_side.tf32(True):
            run()
            torch.cuda.synchronize()
            side_by_side.warm_up_beside([run])
            prepared.runs[self._during] = gpu_time.graph_of(run)
        prepared.keep.append(run)

    def _add_kiln(self, prepared, case, tensors):
        plan = gpu_cases.read_plan(case)
        kernel = kiln.TorchKernel(self._client.compile(case.text,
                                                       self._target))
        facts = gpu_random_worker.judge(plan, tensors, kernel)
        if "error" in facts:
            raise _Wrong(facts["error"])
        outputs = kernel.empty_outputs()
        kernel.prepare(tensors, outputs, 1)

        def run():
            kernel.launch(tensors, outputs, parameter_version=1)
        run()
        torch.cuda.synchronize()
        prepared.runs[self._during] = gpu_time.graph_of(run)
        prepared.keep.append(run)

    def _time(self, prepared, flush):
        """All sides take turns."""
        times = {side: [] for side in prepared.runs}
        for _ in range(_WARM_UPS + _TURNS):
            for side, run in prepared.runs.items():
                self._during = side
                times[side].append(gpu_time.once(run, flush))
        self._note(prepared.seed, us={
            side: statistics.median(ms[_WARM_UPS:]) * 1e3
            for side, ms in times.items()})


def _leave(status):
    """Without taking hundreds of graphs apart: the next process waits. Lines of
    notes are written as they end."""
    sys.stderr.flush()
    os._exit(status)


def main():
    socket, seeds_path, notes_path, ready, give_up = sys.argv[1:]
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    seeds = json.loads(pathlib.Path(seeds_path).read_text())
    with open(notes_path, "a", buffering=1) as notes:
        survey = _Survey(socket, notes)
        survey.prepare(seeds, float(give_up))
        pathlib.Path(ready).touch()
        end = sys.stdin.readline()
        if end:  # or else who would say so has ended
            survey.time(float(end))
    _leave(0)


if __name__ == "__main__":
    main()
