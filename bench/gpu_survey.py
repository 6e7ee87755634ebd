"""Plans that nobody has chosen (random_plans.py) beside eager PyTorch and
torch.compile, each judged as the part "random" judges it, which costs little
beside torch.compile.

torch.compile takes seconds for each, on one core. So several processes
(gpu_survey_worker.py) prepare a share of the plans each, side by side, and then
get the GPU one after the other: nothing else runs while a time is taken.

Plans that an earlier call has timed, or of which same_kernels.py has found that
their kernels are still those that were timed, are not timed again.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import gpu_daemon
import gpu_report
import random_plans
import survey_summary
from generality_summary import GRADES

# Those of the part "random", if both begin with the same seed.
PLANS = 300
# Of the budget; times take about 0.15 s a plan.
_PREPARING = 0.72
# A plan may be begun just before that, and torch.compile takes half a minute
# for some.
_GRACE_S = 30
# Each has a context and a share of the GPU's memory.
_MOST_WORKERS = 14
_PROGRAM = pathlib.Path(__file__).with_name("gpu_survey_worker.py")


def run(scratch, budget_s, first_seed):
    """(lines, ok, report). No plan is begun after `budget_s`."""
    seeds = random_plans.seeds_of_plans(first_seed, PLANS)
    facts = timed_before(scratch)
    left = [seed for seed in seeds if seed not in facts]
    with (tempfile.TemporaryDirectory(
            prefix="kiln-survey-", ignore_cleanup_errors=True) as folder,
          gpu_daemon.running() as daemon):
        measured, log = measure(daemon.socket, left, pathlib.Path(folder),
                                budget_s)
        keep(scratch, measured)
        facts.update(measured)
        found = survey_summary.results(
            first_seed, {seed: facts[seed] for seed in seeds})
        ok = not found["wrong"] and survey_summary.is_complete(found)
        lines = survey_summary.lines(found)
        if not found["timed"]:
            lines.insert(0, log)
        with daemon.connect() as client:
            report = gpu_report.report("survey", client, ok, found)
    report["summary"] = {grade: survey_summary.summary(found, grade)
                         for grade in GRADES}
    return lines, ok, report


def timed_before(scratch):
    """{seed: fact} of what keep() has written."""
    return {note.pop("seed"): note for note in _read(scratch / "facts.jsonl")}


def keep(scratch, facts):
    """Leaves what was timed of {seed: fact} where run() goes on."""
    with open(scratch / "facts.jsonl", "a") as file:
        for seed, fact in facts.items():
            if "us" in fact:
                file.write(json.dumps({"seed": seed, **fact}) + "\n")


def measure(socket, seeds, folder, budget_s):
    """({seed: fact} in order, the end of what the processes wrote)."""
    end = time.monotonic() + budget_s
    give_up = end - budget_s * (1 - _PREPARING)
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1",
                   "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    workers = []
    try:
        for index, share in enumerate(shares(seeds, os.cpu_count())):
            workers.append(_Worker(socket, share, folder, index, give_up,
                                   environment))
        _wait_for(workers, give_up + _GRACE_S)
        for worker in workers:
            worker.time_plans(end)
    finally:
        for worker in workers:
            worker.stop()
    facts = {seed: fact for worker in workers
             for seed, fact in worker.facts().items()}
    log = (folder / "worker.log").read_text(errors="replace")
    return {seed: facts[seed] for seed in seeds}, log[-1500:]


def shares(seeds, cores):
    """The seeds of each process: as many as there are cores, but for two that
    the daemon compiles on."""
    count = max(1, min(_MOST_WORKERS, cores - 2, len(seeds)))
    return [seeds[index::count] for index in range(count)]


def _wait_for(workers, until):
    """Stops those that have not prepared their plans: nothing may run beside
    what is timed."""
    while (any(worker.is_preparing() for worker in workers) and
           time.monotonic() < until):
        time.sleep(0.05)
    for worker in workers:
        if worker.is_preparing():
            worker.stop()


def settled(seeds, notes, ended):
    """{seed: fact}, where the last of a process's `notes` on a seed counts.
    `ended` says how it died, or is empty where it was stopped for want of time
    or came to its end."""
    last = {note["seed"]: note for note in notes}
    return {seed: _settled(last.get(seed, {}), ended) for seed in seeds}


def _settled(note, ended):
    fact = {key: note[key] for key in ("us", "not_timed", "error", "grade")
            if key in note}
    if fact:
        return fact
    during = note.get("during", "not begun")
    if not ended:
        return {"not_timed": survey_summary.OUT_OF_TIME}
    return failure(during, ended)


def failure(during, why, excused=False):
    """The fact of a plan that failed while `during`, a grade, was prepared or
    timed: that is Kiln's fault, unless it is `excused`."""
    why = " ".join(why.split())[:300]
    if during in GRADES and not excused:
        return {"error": why, "grade": during}
    return {"not_timed": f"{during}: {why}"}


class _Worker:
    """A process of gpu_survey_worker.py and what it leaves."""

    def __init__(self, socket, seeds, folder, index, give_up, environment):
        self._seeds = seeds
        self._ready = folder / f"ready-{index}"
        self._notes = folder / f"notes-{index}.jsonl"
        self._stopped = False
        path = folder / f"seeds-{index}.json"
        path.write_text(json.dumps(seeds))
        with open(folder / "worker.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(_PROGRAM), socket, str(path),
                 str(self._notes), str(self._ready), str(give_up)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment,
                text=True)

    def is_preparing(self):
        return self._process.poll() is None and not self._ready.exists()

    def time_plans(self, end):
        """Lets it time its plans until `end` of time.monotonic(), and waits."""
        if self._process.poll() is not None:
            return
        try:
            self._process.communicate(
                f"{end}\n", max(end - time.monotonic(), 0) + _GRACE_S)
        except subprocess.TimeoutExpired:
            self.stop()

    def stop(self):
        if self._process.poll() is None:
            self._stopped = True
            self._process.kill()
            self._process.wait()
        self._process.stdin.close()

    def facts(self):
        """{seed: fact}, once it has ended."""
        status = self._process.returncode
        ended = ("" if self._stopped or status == 0
                 else f"the process died (status {status})")
        return settled(self._seeds, _read(self._notes), ended)


def _read(path):
    """The lines of a file of JSON that are whole."""
    notes = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            notes.append(json.loads(line))
        except json.JSONDecodeError:  # stopped while it wrote
            pass
    return notes
