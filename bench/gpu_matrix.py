"""Runs many plans against the reference and says which are wrong."""

import collections
import json
import subprocess
import sys
import time

import gpu_cases
import gpu_daemon
import gpu_report

_RESTARTS = 12
# Inputs above this many elements need more memory in double than there is;
# the chains at full size are checked by the benchmarks, in slices.
_MAX_ELEMENTS = 1 << 29


def test_cases():
    return (gpu_cases.golden_cases() + gpu_cases.statistics_cases() +
            gpu_cases.scale_cases() + [gpu_cases.large_case()])


def test_names():
    return [case.name for case in test_cases()]


def matrix_names(part, parts):
    names = [case.name for case in gpu_cases.matrix_cases()
             if gpu_cases.elements(gpu_cases.read_plan(case)) <= _MAX_ELEMENTS]
    return names[part::parts]


def run(daemon, names, scratch, budget_s, worker_file="gpu_worker.py",
        options=()):
    """Results by name; a case that ends the process is one of them. Takes up
    again what an earlier call wrote to `scratch`/results.jsonl. `worker_file`
    is called as gpu_worker.py says, with `options` after it."""
    results_path = scratch / "results.jsonl"
    give_up = time.monotonic() + budget_s
    found = _read(results_path)[0]
    if set(names) <= found.keys():
        leave_kept(results_path, found)
    for _ in range(_RESTARTS):
        results, started = _read(results_path)
        if started is not None:
            with open(results_path, "a") as file:
                file.write(json.dumps({"name": started,
                                       "error": "the process died"}) + "\n")
            results[started] = {"error": "the process died"}
        left = [name for name in names if name not in results]
        seconds = give_up - time.monotonic()
        if not left or seconds < 5:
            break
        (scratch / "cases.json").write_text(json.dumps(left))
        with open(scratch / "worker.log", "ab") as log:
            worker = subprocess.Popen(
                [sys.executable, str(gpu_daemon.ROOT / "bench" / worker_file),
                 daemon.socket, str(scratch / "cases.json"), str(results_path),
                 str(seconds), *options], stdout=log, stderr=log)
            try:
                worker.wait(seconds + 60)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
    return {name: fact for name, fact in _read(results_path)[0].items()
            if name in set(names)}


def run_part(part, names, scratch, budget_s, worker_file, counts, summarise,
             **facts):
    """(lines, ok, report) of a part whose plans `worker_file` runs, and what
    `counts` and `summarise` say of its results; `facts` stand in the report,
    too."""
    with gpu_daemon.running() as daemon:
        results = run(daemon, names, scratch, budget_s, worker_file)
        lines, ok = summarise(names, results)
        log = scratch / "worker.log"
        if not results and log.exists():
            lines.insert(0, log.read_text()[-1500:])
        with daemon.connect() as client:
            report = gpu_report.report(part, client, ok,
                                       {**facts, **counts(names, results)})
    return lines, ok, report


def leave_kept(path, results):
    """Of a run that came to its end, what same_kernels.py kept before it."""
    path.write_text("".join(json.dumps(fact) + "\n"
                            for fact in results.values()
                            if "compiler" in fact))


def _read(path):
    """(finished cases, the case that was started and not finished)."""
    results, started = {}, None
    if path.exists():
        for line in path.read_text().splitlines():
            fact = json.loads(line)
            if "start" in fact:
                started = fact["start"]
            else:
                results[fact["name"]] = fact
                started = None
    return results, started


def summarise(names, results):
    """Lines for people: a row per set, then failures. Plans that PyTorch
    refuses are not judged, and so not ok."""
    rows = collections.defaultdict(lambda: [0, 0, 0, 0, 0, 0.0])
    for name in names:
        row = rows[name.split("/")[0]]
        row[0] += 1
        if name not in results:
            row[2] += 1
            continue
        row[1] += "error" in results[name]
        row[3] += "refused" in results[name]
        row[4] += is_ill_conditioned(results[name])
        for fact in _verdicts(results[name]):
            if fact["norm_torch"] > 0 and not fact["ill_conditioned"]:
                row[5] = max(row[5], fact["norm"] / fact["norm_torch"])
    lines = [f"{'set':14}{'plans':>7}{'wrong':>7}{'not run':>9}{'refused':>9}"
             f"{'ill-conditioned':>17}{'worst norm/PyTorch':>20}"]
    for name, (plans, wrong, missing, refused, ill, ratio) in sorted(
            rows.items()):
        lines.append(f"{name:14}{plans:7}{wrong:7}{missing:9}{refused:9}"
                     f"{ill:17}{ratio:20.2f}")
    failures = [(name, fact["error"]) for name, fact in results.items()
                if "error" in fact]
    lines += [f"  {name}: {error[:150]}" for name, error in failures[:25]]
    if len(failures) > 25:
        lines.append(f"  ... and {len(failures) - 25} more")
    lines += [f"  refused by PyTorch: {name}: {fact['refused'][:120]}"
              for name, fact in results.items() if "refused" in fact][:10]
    return lines, not failures and not any(row[2] + row[3]
                                           for row in rows.values())


def counts(names, results):
    """What the result file says of a run."""
    def named(wanted):
        return {name: fact for name, fact in results.items() if wanted(fact)}
    return {"plans": len(names), "run": len(results),
            "wrong": named(lambda fact: "error" in fact),
            "refused by PyTorch": named(lambda fact: "refused" in fact),
            "refused by PyTorch in f32": named(
                lambda fact: "refused_in_f32" in fact),
            "ill-conditioned": named(is_ill_conditioned)}


def is_ill_conditioned(fact):
    return any(verdict["ill_conditioned"] for verdict in _verdicts(fact))


def _verdicts(fact):
    return [value for value in fact.values() if isinstance(value, dict)]
