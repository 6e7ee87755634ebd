"""Runs several parts one after the other, each in a process of its own, and
leaves out those whose result file is complete.

A part that fails, crashes or hangs does not stop the others.
"""

import dataclasses
import json
import os
import signal
import subprocess
import time

import headline

PART_BUDGET_S = 420
# What a part may take after its budget: it may be in its last plan, and stop
# its daemon.
_GRACE_S = 180
# With less left, a part that goes on where it stopped would get nowhere.
_LEAST_S = 60


@dataclasses.dataclass
class Outcome:
    name: str
    state: str  # "ok", "FAILED", "kept" or "not run"
    seconds: float | None
    note: str

    @property
    def good(self):
        return self.state in ("ok", "kept")


def read_report(out, part):
    """The content of a part's result file; None if there is none."""
    try:
        return json.loads((out / f"{part.name}.json").read_text())
    except (OSError, json.JSONDecodeError):
        return None


def is_complete(report, compiler, max_autotune, seed=1):
    """Whether a result file says all that its part would: right, and measured
    with the code generation `compiler`; of the parts "random" and "survey",
    of plans from `seed` on."""
    if report is None or not report.get("ok"):
        return False
    if report.get("compiler") != compiler:
        return False
    if report["part"] in ("random", "survey"):
        return report["results"]["first_seed"] == seed
    if report["part"].startswith("bench"):
        chains = report["results"].values()
        return (bool(chains) and
                all(chain.get("complete") for chain in chains) and
                (not max_autotune or has_max_autotune(report)))
    return True


def has_max_autotune(report):
    """Whether a result file is of chains, and has max-autotune's times."""
    if report is None or not report["part"].startswith("bench"):
        return False
    chains = report["results"].values()
    return bool(chains) and all("max_autotune" in chain["times_ms"]
                                for chain in chains)


def run(parts, out, *, compiler, command, max_autotune, seed=1, again=False,
        budget_s=None, say=print):
    """Outcomes in order. `command(part, seconds)` is the command line that
    runs a part with that budget and writes its file to `out`;
    `max_autotune(part)` says whether the part's file needs it, `seed` where
    the plans of "random" and "survey" begin. After `budget_s`, if given, no
    part is started."""
    give_up = None if budget_s is None else time.monotonic() + budget_s
    outcomes = []
    for index, part in enumerate(parts, 1):
        progress = f"[{index}/{len(parts)}] {part.name}"
        report = read_report(out, part)
        if not again and is_complete(report, compiler, max_autotune(part),
                                     seed):
            outcome = Outcome(part.name, "kept", None,
                              headline.of_report(report))
            say(f"{progress}: kept from {report['date']}; --again measures "
                "again")
        elif _seconds_left(give_up) < _needed(part):
            outcome = Outcome(part.name, "not run", None,
                              "out of time; run this again to go on")
            say(f"{progress}: not run, out of time")
        else:
            say(f"{progress}: about {part.about_s} s")
            outcome = _run_part(part, out, command, _seconds_left(give_up))
            say(f"{progress}: {outcome.state} after {outcome.seconds:.0f} s")
        outcomes.append(outcome)
    return outcomes


def table(outcomes):
    """Lines: a part each, then how many are good."""
    lines = [f"{'part':19}{'state':9}{'s':>5}  what came out"]
    for outcome in outcomes:
        seconds = ("-" if outcome.seconds is None
                   else f"{outcome.seconds:.0f}")
        lines.append(f"{outcome.name:19}{outcome.state:9}{seconds:>5}  "
                     f"{outcome.note}")
    good = sum(outcome.good for outcome in outcomes)
    lines.append(f"gpu_check: {good} of {len(outcomes)} parts ok")
    return lines


def _seconds_left(give_up):
    if give_up is None:
        return PART_BUDGET_S
    return give_up - time.monotonic()


def _needed(part):
    return min(part.about_s, _LEAST_S) if part.goes_on else part.about_s


def _run_part(part, out, command, seconds):
    # What a part leaves that crashes is not of this run.
    (out / f"{part.name}.json").unlink(missing_ok=True)
    begin = time.monotonic()
    status = _run_process(command(part, seconds), seconds + _GRACE_S)
    took_s = time.monotonic() - begin
    report = read_report(out, part)
    if report is None:
        return Outcome(part.name, "FAILED", took_s,
                       f"{status}, and left no result file")
    state = "ok" if status == "status 0" and report["ok"] else "FAILED"
    return Outcome(part.name, state, took_s, headline.of_report(report))


def _run_process(command, timeout_s):
    """How `command` ended. Its daemon ends with it, whatever happens."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return f"status {process.wait(timeout_s)}"
    except subprocess.TimeoutExpired:
        return f"not finished after {timeout_s:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
