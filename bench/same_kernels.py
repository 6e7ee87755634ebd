#!/usr/bin/env python3
"""Whether this tree's kernels are those that were measured. Needs no GPU, but
build-gpu/bundle (scripts/gpu_bundle), NVRTC, grpcio and protobuf, and nvdisasm
where the compiler names constants that it did not name before.

  bench/same_kernels.py KILND         the one whose `compiler` bench/results has
  bench/same_kernels.py KILND --nvrtc FOLDER --target h100-sxm
  bench/same_kernels.py KILND --part bench-P1,latency   of these parts alone
  bench/same_kernels.py KILND --keep

compiles every plan that gpu_check measures or checks with that kilnd and with
the bundle's, compares machine code and launches byte for byte, and writes
bench/results/same_kernels-DIGEST.json, with the beginning of what was measured
for DIGEST: parts may have been measured with several. Parts of gpu_check of
which no plan differs are this tree's for scripts/check_bench, too: they need not
be measured again. Of parts of generality and of the survey --keep leaves what
does not differ where gpu_check goes on with it. The survey and all rows took 16
minutes on two cores.

Where a file compares something older with that kilnd, as the tree then was, and
--part asks for all its parts, it is renewed: what it speaks of is this tree's
where neither comparison differs.

A file of machine code lists constants of its source that no instruction reads.
Files that differ are the same if the instructions are, and read no such list.

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
import shutil
import subprocess
import sys
import tempfile

import gpu_daemon  # extends sys.path

import chains
import compiler_digest
import generality
import gpu_cases
import gpu_faults
import gpu_latency
import gpu_matrix
import gpu_parts
import gpu_random
import gpu_repeat
import gpu_survey
import result_files
import survey_summary
from generality_summary import GRADES

RESULTS = gpu_daemon.ROOT / "bench" / "results"
EXAMPLES = gpu_daemon.ROOT / "examples" / "plans"
# Parts of gpu_check that what is found here speaks for.
_GENERALITY = tuple(f"generality-{index}"
                    for index in range(gpu_parts.GENERALITY_PARTS))
_BENCH = tuple(part.name for grade in GRADES
               for part in gpu_parts.named(["bench"], grade))
KINDS = ("repeat", *_BENCH, *_GENERALITY, "random", "survey", "tests",
         "sanitize", "matrix", "latency", "faults")
_WORKERS = 2
_ATTEMPTS = 8
_CONSTANTS_OF_MODULE = "c[0x4]"  # as nvdisasm writes addresses of them


@dataclasses.dataclass
class Plan:
    text: str
    variant: str = "auto"
    # Of the parts of gpu_check that run it: of those that come in several files
    # the kind, "matrix" and not "matrix-0", but for bench and generality, whose
    # rows are few.
    kinds: set = dataclasses.field(default_factory=set)


def plans():
    """{name: Plan} of all that the parts KINDS run, each text once."""
    found = {}
    for kind, cases in _cases():
        for case in cases:
            plan = found.setdefault(case.text, (case.name, Plan(case.text)))[1]
            plan.kinds.add(kind)
    named = dict(found.values())
    named.update({f"eager/{name}": Plan(text, "eager",
                                       {*_BENCH, *_GENERALITY})
                  for name, text in chains.CHAINS.items()})
    return named


def _cases():
    """(kind, cases) of all KINDS."""
    larger = gpu_repeat.cases()
    yield "repeat", larger
    for part in _BENCH:
        yield part, [case for case in larger if _is_of_bench(case.name, part)]
    for index, part in enumerate(_GENERALITY):
        yield part, _of_names(larger, generality.names_of(index))
    for kind, plans_of_kind in (("random", gpu_random.PLANS),
                                ("survey", gpu_survey.PLANS)):
        yield kind, _cases_at_random(kind, plans_of_kind)
    yield "tests", gpu_matrix.test_cases()
    yield "sanitize", gpu_cases.template_cases() + [
        gpu_cases.Case(f"examples/{path.stem}", path.read_text())
        for path in sorted(EXAMPLES.glob("*.kiln"))]
    yield "matrix", gpu_cases.matrix_cases()
    yield "latency", [gpu_cases.Case("latency", gpu_latency.PLAN)]
    yield "faults", [gpu_cases.Case("faults", gpu_faults.PLAN),
                     gpu_cases.Case("faults_wrong", gpu_faults.WRONG_PLAN)]


def _cases_at_random(kind, count):
    """From the seed on that was measured; where none was, from the first."""
    measured = result_files.ResultFiles(RESULTS).of_kind(kind)
    seed = measured[0]["first_seed"] if measured else 1
    return [gpu_random.case_named(name)
            for name in gpu_random.names_of(seed, count)]


@dataclasses.dataclass(frozen=True)
class Code:
    """All that a GPU sees of a plan."""
    launches: str  # and resources, a digest
    modules: tuple = ()  # machine code

    def runs_as(self, other, disassemble):
        return (self.launches == other.launches and
                len(self.modules) == len(other.modules) and
                all(_are_alike(one, two, disassemble)
                    for one, two in zip(self.modules, other.modules)))


def _are_alike(one, two, disassemble):
    if one == two:
        return True
    instructions = disassemble(one)
    return (instructions is not None and instructions == disassemble(two) and
            _CONSTANTS_OF_MODULE not in instructions)


def no_disassembler(_):
    return None


@functools.lru_cache(maxsize=64)
def nvdisasm(cubin):
    """The instructions of a module as text; None without that program."""
    program = shutil.which("nvdisasm")
    if program is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([program, "-c", file.name], check=True,
                              capture_output=True, text=True).stdout


def _is_of_bench(name, part):
    """Whether a case as "fp32/P1" is that of a part as "bench-P1"."""
    one = gpu_parts.PARTS[part]
    return name == f"{one.grade}/{one.base.split('-')[1]}"


def _of_names(cases, names):
    """Of "fp32/P1" and others those that are named, as "P1"."""
    return [case for case in cases if case.name.split("/")[1] in names]


class Compiler:
    """What a kilnd makes of plans for one target."""

    def __init__(self, client, target):
        self._client = client
        self._target = target
        self.info = client.info()

    def code(self, plan):
        """The Code of a Plan. Raises KilnError."""
        artifact = self._client.compile(plan.text, self._target,
                                        variant=plan.variant).artifact
        # What names the compiler, and generated text, are not run.
        artifact.ClearField("key")
        artifact.ClearField("key_text")
        modules = tuple(module.cubin for module in artifact.modules)
        for module in artifact.modules:
            for field in ("source", "cubin", "sha256"):
                module.ClearField(field)
        return Code(hashlib.sha256(
            artifact.SerializeToString(deterministic=True)).hexdigest(),
                    modules)


@contextlib.contextmanager
def running(kilnd, nvrtc, target):
    """The Compiler of a private `kilnd`; None: of the bundle's."""
    with (gpu_daemon.running(kilnd=kilnd, nvrtc=nvrtc,
                             workers=_WORKERS) as daemon,
          daemon.connect() as client):
        yield Compiler(client, target)


def differ_at_first(measured, tree, wanted, say, disassemble=no_disassembler):
    """Names of the plans that two compilers make different things of."""
    def differs(plan):
        return not measured.code(plan).runs_as(tree.code(plan), disassemble)
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


def differ_always(measured, tree, wanted, names, disassemble=no_disassembler):
    """Of `names`, in order, those of whose plans two compilers, started anew for
    each attempt, have no result in common. Launches are the same in all."""
    made = {name: (set(), set()) for name in names}
    differing, left = set(names), list(names)
    for _ in range(_ATTEMPTS):
        if not left:
            break
        with measured() as one, tree() as other:
            for compiler, which in ((one, 0), (other, 1)):
                for name, code in _codes(compiler, wanted, left):
                    made[name][which].add(code)
        differing -= {name for name in left
                      if _are_any_alike(*made[name], disassemble)}
        left = [name for name in left
                if name in differing and _launch_alike(*made[name])]
    return [name for name in names if name in differing]


def _codes(compiler, wanted, names):
    with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
        yield from zip(names, pool.map(
            compiler.code, [wanted[name] for name in names]))


def _are_any_alike(one, other, disassemble):
    return any(code.runs_as(another, disassemble)
               for code, another in itertools.product(one, other))


def _launch_alike(one, other):
    return {code.launches for code in one} == {code.launches for code in other}


def keep_rows(reports, differing, part):
    """Leaves rows of a part of generality where gpu_check goes on with it, each
    with the compiler that it was measured with, but for those of plans that
    differ. Rows go from part to part as others come: any file may have them."""
    rows = {name: {"compiler": report["compiler"], **facts}
            for report in reports for name, facts in report["results"].items()}
    with open(_kept_in(part) / "results.jsonl", "w") as file:
        for name in _rows_of(part):
            if name in rows and not _is_among(differing, name):
                file.write(json.dumps(rows[name]) + "\n")


def _rows_of(part):
    return generality.names_of(_GENERALITY.index(part))


def _has_all_rows(report, part):
    return report is not None and set(_rows_of(part)) <= report["results"].keys()


def keep_plans(report, differing):
    """The same of the survey."""
    found = report["results"]
    gpu_survey.keep(_kept_in("survey"), {
        int(seed): {"compiler": report["compiler"],
                    **survey_summary.fact_of(found, seed)}
        for seed in found["timed"] if not _is_among(differing, seed)})


def _kept_in(part):
    """The folder, empty."""
    folder = gpu_parts.scratch_folder(part)
    for path in folder.iterdir():
        if path.name != gpu_parts.STAMP:
            path.unlink()
    return folder


def _is_among(differing, name):
    """Whether a plan differs in any grade."""
    return any(f"{grade}/{name}" in differing for grade in GRADES)


def keep_rows_of_parts(same):
    """Of the parts that gpu_check goes on with plan by plan and that `same`,
    what a file of this program says, was asked for and does not speak for, if
    they were measured with its compiler: what does not differ. A part of
    generality whose file lacks some of its rows is left, too."""
    measured = {
        name: report for name, report in
        result_files.ResultFiles(RESULTS).reports.items()
        if report.get("compiler") == same["measured"]}
    differing = same["results"]["differing"]
    rows = [measured[part] for part in _GENERALITY if part in measured]
    for part in _GENERALITY:
        is_done = part in same["kinds"] and _has_all_rows(measured.get(part),
                                                          part)
        if rows and part in same["asked"] and not is_done:
            keep_rows(rows, differing, part)
    if "survey" in set(same["asked"]) - set(same["kinds"]) & set(measured):
        keep_plans(measured["survey"], differing)


def renewed(earlier, same, wanted):
    """What two comparisons say together: `earlier`, of something older with
    what was `same`'s measured compiler, and `same`, of `wanted` plans."""
    asked = set(earlier["asked"])
    differing = set(earlier["results"]["differing"]) | {
        name for name in same["results"]["differing"]
        if wanted[name].kinds & asked}
    return {**same, "measured": earlier["measured"], "asked": sorted(asked),
            "kinds": sorted(set(earlier["kinds"]) & set(same["kinds"])),
            "results": {"plans": earlier["results"]["plans"],
                        "differing": sorted(differing)}}


def comparisons_before(same, folder):
    """Reports in `folder` that compare something older with what `same` says
    was measured, and ask for no part that it does not."""
    def goes_on(earlier):
        return (earlier["compiler"] == same["measured"] and
                all(earlier[what] == same[what] for what in ("target", "nvrtc"))
                and set(earlier["asked"]) <= set(same["asked"]))
    reports = [json.loads(path.read_text())
               for path in sorted(folder.glob("same_kernels-*.json"))]
    return [report for report in reports if goes_on(report)]


def write(report, options):
    """Its file, which is written, and what --keep asks for."""
    path = options.out / f"same_kernels-{report['measured'][:12]}.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    if options.keep:
        keep_rows_of_parts(report)
    return path


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
    parser.add_argument("--part", default=",".join(KINDS), metavar="PART,...",
                        help="default: %(default)s")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--keep", action="store_true",
                        help="leave rows of generality that do not differ for "
                        "gpu_check, in build-gpu/scratch")
    options = parser.parse_args()
    options.kinds = set(options.part.split(","))
    unknown = options.kinds.difference(KINDS)
    if unknown:
        parser.error(f"--part: {', '.join(sorted(unknown))} (allowed: "
                     f"{', '.join(KINDS)})")
    return options


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
        wanted = {name: plan for name, plan in plans().items()
                  if plan.kinds & options.kinds}
        found = differ_at_first(one, other, wanted, say, nvdisasm)
        report = {"part": "same_kernels", "ok": True,
                  "measured": one.info.compiler, "compiler": here,
                  "target": options.target, "nvrtc": other.info.nvrtc_version,
                  "date": datetime.date.today().isoformat()}
    found = differ_always(measured, tree, wanted, found, nvdisasm)
    report["asked"] = sorted(options.kinds)
    report["kinds"] = sorted(
        options.kinds.difference(*(wanted[name].kinds for name in found)))
    report["results"] = {"plans": len(wanted), "differing": found}
    for earlier in comparisons_before(report, options.out):
        say(f"renewed {write(renewed(earlier, report, wanted), options)}")
    path = write(report, options)
    say(f"{len(wanted)} plans, {len(found)} differ"
        f"{': ' if found else ''}{', '.join(found)}; wrote {path}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
