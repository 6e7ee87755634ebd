#!/usr/bin/env python3
"""Whether this tree's kernels are those that were measured. Needs no GPU, but
build-gpu/bundle (scripts/gpu_bundle), NVRTC, grpcio and protobuf.

  bench/same_kernels.py KILND         the one whose `compiler` bench/results has
  bench/same_kernels.py KILND --nvrtc FOLDER --target h100-sxm

compiles every plan that gpu_check measures or checks with that kilnd and with
the bundle's, compares machine code and launches byte for byte, and writes
bench/results/same_kernels.json. Parts of gpu_check of which no plan differs are
this tree's for scripts/check_bench, too: they need not be measured again. About
10 minutes on two cores.

NVRTC now and then makes other machine code of the same source, one time in six
of one plan. So plans that differ are compiled again, and differ in the end if
no code of one kilnd is among the other's.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import datetime
import functools
import hashlib
import itertools
import json
import pathlib
import sys

import gpu_daemon  # extends sys.path

import chains
import compiler_digest
import gpu_cases
import gpu_faults
import gpu_latency
import gpu_matrix
import gpu_random
import gpu_repeat
import result_files

RESULTS = gpu_daemon.ROOT / "bench" / "results"
EXAMPLES = gpu_daemon.ROOT / "examples" / "plans"
# Parts of gpu_check that what is found here speaks for.
KINDS = ("repeat", "bench", "generality", "random", "tests", "sanitize",
         "matrix", "latency", "faults")
_WORKERS = 2
_ATTEMPTS = 8


@dataclasses.dataclass
class Plan:
    text: str
    variant: str = "auto"
    # Of the parts of gpu_check that run it: "generality", not "generality-0".
    kinds: set = dataclasses.field(default_factory=set)


def plans():
    """{name: Plan} of all that the parts KINDS run, each text once."""
    found = {}
    for kind, cases in _cases():
        for case in cases:
            plan = found.setdefault(case.text, (case.name, Plan(case.text)))[1]
            plan.kinds.add(kind)
    named = dict(found.values())
    named.update({f"eager/{name}": Plan(text, "eager", {"bench", "generality"})
                  for name, text in chains.CHAINS.items()})
    return named


def _cases():
    """(kind, cases) of all KINDS."""
    larger = gpu_repeat.cases()
    is_chain = [case.name.split("/")[1] in chains.CHAINS for case in larger]
    yield "repeat", larger
    yield "bench", list(itertools.compress(larger, is_chain))
    yield "generality", [case for case, of_chain in zip(larger, is_chain)
                         if not of_chain]
    for results in result_files.ResultFiles(RESULTS).of_kind("random"):
        names = gpu_random.names_of(results["first_seed"], gpu_random.PLANS)
        yield "random", [gpu_random.case_named(name) for name in names]
    yield "tests", gpu_matrix.test_cases()
    yield "sanitize", gpu_cases.template_cases() + [
        gpu_cases.Case(f"examples/{path.stem}", path.read_text())
        for path in sorted(EXAMPLES.glob("*.kiln"))]
    yield "matrix", gpu_cases.matrix_cases()
    yield "latency", [gpu_cases.Case("latency", gpu_latency.PLAN)]
    yield "faults", [gpu_cases.Case("faults", gpu_faults.PLAN),
                     gpu_cases.Case("faults_wrong", gpu_faults.WRONG_PLAN)]


class Compiler:
    """What a kilnd makes of plans for one target."""

    def __init__(self, client, target):
        self._client = client
        self._target = target
        self.info = client.info()

    def digest(self, plan):
        """Of all that a GPU sees of a Plan. Raises KilnError."""
        artifact = self._client.compile(plan.text, self._target,
                                        variant=plan.variant).artifact
        # What names the compiler, and generated text, are not run.
        artifact.ClearField("key")
        artifact.ClearField("key_text")
        for module in artifact.modules:
            module.ClearField("source")
        return hashlib.sha256(
            artifact.SerializeToString(deterministic=True)).hexdigest()


@contextlib.contextmanager
def running(kilnd, nvrtc, target):
    """The Compiler of a private `kilnd`; None: of the bundle's."""
    with (gpu_daemon.running(kilnd=kilnd, nvrtc=nvrtc,
                             workers=_WORKERS) as daemon,
          daemon.connect() as client):
        yield Compiler(client, target)


def differ_at_first(measured, tree, wanted, say):
    """Names of the plans that two compilers make different things of."""
    def differs(plan):
        return measured.digest(plan) != tree.digest(plan)
    found = []
    with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
        for number, (name, other) in enumerate(
                zip(wanted, pool.map(differs, wanted.values())), 1):
            if other:
                found.append(name)
                say(f"differs at first: {name}")
            if number % 100 == 0:
                say(f"{number} of {len(wanted)} plans")
    return found


def differs_always(measured, tree, plan):
    """Whether two compilers, started anew for each attempt, have no result in
    common."""
    of_measured, of_tree = set(), set()
    for _ in range(_ATTEMPTS):
        with measured() as one, tree() as other:
            of_measured.add(one.digest(plan))
            of_tree.add(other.digest(plan))
        if of_measured & of_tree:
            return False
    return True


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kilnd", type=pathlib.Path,
                        help="of the tree that was measured")
    parser.add_argument("--nvrtc", default="", help="the folder of its library "
                        "(default: both daemons look for it)")
    parser.add_argument("--target", default="h100-sxm",
                        help="default: %(default)s")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    return parser.parse_args()


def main():
    options = parse_options()
    here = compiler_digest.of_tree(gpu_daemon.ROOT)
    say = functools.partial(print, flush=True)
    measured, tree = (
        functools.partial(running, kilnd, options.nvrtc, options.target)
        for kilnd in (options.kilnd, None))
    with measured() as one, tree() as other:
        if other.info.compiler != here:
            sys.exit("same_kernels: build-gpu/bundle is of other code "
                     "generation than this tree; scripts/gpu_bundle makes it")
        wanted = plans()
        found = differ_at_first(one, other, wanted, say)
        report = {"part": "same_kernels", "ok": True,
                  "measured": one.info.compiler, "compiler": here,
                  "target": options.target, "nvrtc": other.info.nvrtc_version,
                  "date": datetime.date.today().isoformat()}
    found = [name for name in found
             if differs_always(measured, tree, wanted[name])]
    report["kinds"] = sorted(
        set(KINDS).difference(*(wanted[name].kinds for name in found)))
    report["results"] = {"plans": len(wanted), "differing": found}
    path = options.out / "same_kernels.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    say(f"{len(wanted)} plans, {len(found)} differ"
        f"{': ' if found else ''}{', '.join(found)}; wrote {path}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
