"""The parts of scripts/gpu_check: names, order, and how each runs.

Modules that need PyTorch are imported where a part runs, so that naming parts
needs nothing.
"""

import dataclasses
import shutil

import compiler_digest
import gpu_daemon

MATRIX_PARTS = 4
CHAINS = ("P1", "P2", "P3", "P4")
# Of P1, a norm, both grades are the same.
TF32_CHAINS = CHAINS[1:]
GENERALITY_PARTS = 4
BOTH = "both"  # grades, in one part
STAMP = "compiler"  # a file that says of which compiler a scratch folder is
_NATIVE_TIMEOUT_S = 120


@dataclasses.dataclass(frozen=True)
class Part:
    name: str  # of its result file too, as "bench-P2-tf32"
    base: str  # "bench-P2"
    grade: str  # "fp32", "tf32" or BOTH
    about_s: int  # on an H100
    goes_on: bool  # where it stopped, if it was cut off

    @property
    def kind(self):
        return self.base.split("-")[0]


def _part(base, about_s, goes_on, grade="fp32"):
    name = base + ("-tf32" if grade == "tf32" else "")
    return Part(name, base, grade, about_s, goes_on)


def _every_part():
    yield _part("tests", 40, False)
    for index in range(MATRIX_PARTS):
        yield _part(f"matrix-{index}", 15, True)
    yield _part("faults", 65, False)
    yield _part("latency", 20, False)
    yield _part("sanitize", 110, False)
    yield _part("repeat", 40, True, BOTH)
    yield _part("random", 75, True, BOTH)
    yield _part("survey", 170, True, BOTH)
    for grade in ("fp32", "tf32"):
        for chain in CHAINS:
            yield _part(f"bench-{chain}", 45 if grade == "fp32" else 30, True,
                        grade)
    for index in range(GENERALITY_PARTS):
        yield _part(f"generality-{index}", 150, True, BOTH)


PARTS = {part.name: part for part in _every_part()}
_NOT_IN_GROUPS = {f"bench-{chain}-tf32" for chain in CHAINS
                  if chain not in TF32_CHAINS}


def named(words, grade):
    """The parts that command line words mean, in the order of PARTS: a name, a
    group such as "bench" (of `grade`), or "all", both grades of everything.
    Raises KeyError with the word that means nothing."""
    wanted = set()
    for word in words:
        found = _meaning(word, grade)
        if not found:
            raise KeyError(word)
        wanted |= found
    return [part for name, part in PARTS.items() if name in wanted]


def _meaning(word, grade):
    if word == "all":
        return set(PARTS) - _NOT_IN_GROUPS
    graded = {part.name for part in PARTS.values()
              if part.base == word and part.grade in (grade, BOTH)}
    if graded or word in PARTS:
        return graded or {word}
    return {part.name for part in PARTS.values()
            if part.kind == word and part.grade in (grade, BOTH)
            } - _NOT_IN_GROUPS


def scratch_folder(name):
    """Where the part of that name keeps what it needs to go on. Begins anew, and
    says so, where what is kept is of another compiler than this tree's."""
    folder = gpu_daemon.ROOT / "build-gpu" / "scratch" / name
    digest = compiler_digest.of_tree(gpu_daemon.ROOT)
    stamp = folder / STAMP
    if folder.exists() and not (stamp.exists() and stamp.read_text() == digest):
        print(f"{name}: begins anew, for what was kept is of another compiler",
              flush=True)
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    stamp.write_text(digest)
    return folder


def run(part, scratch, budget_s, max_autotune, first_seed=1):
    """(lines, ok, report). No new plan is started after `budget_s`.
    `first_seed` is of the parts "random" and "survey"."""
    if part.kind == "bench":
        import gpu_bench

        return gpu_bench.run(part.base, scratch, budget_s, part.grade,
                             max_autotune)
    if part.kind == "generality":
        import generality

        return generality.run(part.base, scratch, budget_s)
    if part.kind == "latency":
        import gpu_latency

        return gpu_latency.run()
    if part.kind == "faults":
        import gpu_faults

        return gpu_faults.run()
    if part.kind == "repeat":
        import gpu_repeat

        return gpu_repeat.run(scratch, budget_s)
    if part.kind == "random":
        import gpu_random

        return gpu_random.run(scratch, budget_s, first_seed)
    if part.kind == "survey":
        import gpu_survey

        return gpu_survey.run(scratch, budget_s, first_seed)
    if part.kind == "sanitize":
        return _check_sanitizer(scratch, budget_s)
    return _check_plans(part, scratch, budget_s)


def _check_plans(part, scratch, budget_s):
    import gpu_daemon
    import gpu_matrix
    import gpu_native
    import gpu_report

    if part.kind == "tests":
        names = gpu_matrix.test_names()
    else:
        names = gpu_matrix.matrix_names(int(part.base.split("-")[1]),
                                        MATRIX_PARTS)
    with gpu_daemon.running() as daemon:
        results = gpu_matrix.run(daemon, names, scratch, budget_s)
        lines, ok = gpu_matrix.summarise(names, results)
        log = scratch / "worker.log"
        if not ok and log.exists():
            lines.insert(0, log.read_text()[-1500:])
        if not ok:
            lines.insert(0, daemon.log_tail(1500))
        counts = gpu_matrix.counts(names, results)
        if part.kind == "tests":
            native = gpu_native.run(daemon, scratch, _NATIVE_TIMEOUT_S)
            counts["kiln_gpu_test"] = native
            lines.append(f"kiln_gpu_test: {native['note']}")
            ok = ok and native["ok"]
        with daemon.connect() as client:
            report = gpu_report.report(part.base, client, ok, counts)
    return lines, ok, report


def _check_sanitizer(scratch, budget_s):
    import gpu_daemon
    import gpu_report
    import gpu_sanitize

    with gpu_daemon.running() as daemon:
        failures = gpu_sanitize.run(daemon, scratch, budget_s)
        ok = not any(failures.values())
        with daemon.connect() as client:
            report = gpu_report.report("sanitize", client, ok, failures)
    return [f"{name:60} {'FAILED ' + why if why else 'clean'}"
            for name, why in failures.items()], ok, report
