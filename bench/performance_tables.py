#!/usr/bin/env python3
"""Renders the tables of docs/performance.md from the files of bench/results.

  bench/performance_tables.py --check   fails where the document differs
  bench/performance_tables.py --write   brings it up to date

A table stands between two comments, and what is between them is replaced:

  <!-- table: chains-fp32 -->
  <!-- end -->
"""

import argparse
import difflib
import pathlib
import re
import sys
import textwrap

import aims_table
import chain_tables
import generality_summary
import generality_tables
import host_table
import latency_table
import markdown
import result_files
import survey_table

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "performance.md"
_BLOCK = re.compile(r"(<!-- table: (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def environment(files):
    """Where and when everything was measured."""
    found = [f"on {markdown.listing(dates)} on one {gpu} with driver "
             f"{driver}, NVRTC {nvrtc} and PyTorch {torch}"
             for (gpu, driver, nvrtc, torch), dates
             in files.environments().items()]
    lines = [f"Measured {'; '.join(found)}." if found
             else markdown.NOT_MEASURED]
    kept = sum("compiler" in row for results in files.of_kind("generality")
               for row in results.values())
    if kept:
        rows = "row of other plans is" if kept == 1 else "rows of other plans are"
        lines.append(f"{kept} {rows} of a run before that of their file: "
                     "their kernels had not changed "
                     "(`bench/same_kernels.py`).")
    if before := files.of_trees_before():
        parts = markdown.listing(f"`{name}`" for name in before)
        lines.append("Of the tree before, of which some kernels have changed: "
                     f"{parts}.")
    same = files.of_kind("same_kernels")
    if same and not any(results["differing"] for results in same):
        plans = sum(results["plans"] for results in same)
        lines.append("Of other parts that were measured before the tree "
                     f"changed, the kernels of all {plans:,} plans are the "
                     "same.")
    return lines


def checks(files):
    """What was compared with PyTorch in double, and what else was tried."""
    lines = []
    plans = files.of_kind("tests") + files.of_kind("matrix")
    if plans:
        total, run, wrong, ill = (
            sum(p["plans"] for p in plans), sum(p["run"] for p in plans),
            sum(len(p["wrong"]) for p in plans),
            sum(len(p["ill-conditioned"]) for p in plans))
        lines.append(f"- {run:,} of {total:,} small plans ran, each launched "
                     "by the client, by the daemon and from a CUDA graph: "
                     f"{wrong} wrong, {ill} ill-conditioned.")
    for results in files.of_kind("sanitize"):
        dirty = [name for name, why in results.items() if why]
        lines.append(f"- {len(results)} runs under memcheck, racecheck and "
                     f"synccheck: {len(dirty)} with findings.")
    for results in files.of_kind("repeat"):
        lines.append(f"- {results['run']} of {results['plans']} larger plans "
                     f"were launched {results['launches']:,} times, each at "
                     f"least {results['fewest_launches']} times on the same "
                     f"inputs: {len(results['wrong'])} failed or differed "
                     "from their first results in any bit.")
    for results in files.of_kind("random"):
        lines.append(f"- {results['run']} of {results['plans']} plans at "
                     f"random: {len(results['wrong'])} wrong; "
                     f"{markdown.times(results['times_eager'])} × as fast as "
                     "eager PyTorch in the geometric mean, "
                     f"{len(results['slower'])} slower.")
    for results in files.of_kind("faults"):
        bad = [name for name, fact in results.items() if not fact["ok"]]
        lines.append(f"- Faults ({markdown.listing(results)}): "
                     f"{len(bad)} not survived by the others.")
    return lines or [markdown.NOT_MEASURED]


def summary(files):
    """A line for each chain and for the other plans."""
    lines = []
    for grade in ("fp32", "tf32"):
        for name, facts in files.chains(grade).items():
            best = chain_tables.ratio_to_best(files, name, grade)
            lines.append(
                f"- {name}, `{grade}`: "
                f"{markdown.significant(chain_tables.median(facts, 'kiln'))} "
                f"ms, {markdown.percent(facts['of_floor'])} of the floor's "
                "speed" + (f", {markdown.times(best)} × as fast as the best "
                           "of PyTorch" if best else "") + ".")
        lines.append(_generality_line(files.generality(grade), grade))
    return lines


def _generality_line(rows, grade):
    if not rows:
        return f"- Other plans, `{grade}`: {markdown.NOT_MEASURED.lower()}"
    found = generality_summary.summary(rows)
    return (f"- {len(rows)} other plans, `{grade}`: "
            f"{markdown.times(found['times_compile'])} × as fast as "
            "torch.compile in the geometric mean, "
            f"{markdown.times(found['times_best'])} × as the best of "
            f"PyTorch; {len(found['below_best'])} are slower than it.")


TABLES = {
    "environment": environment,
    "checks": checks,
    "summary": summary,
    "aims": aims_table.table,
    "chains-conditions": chain_tables.conditions,
    "chains-fp32": lambda files: chain_tables.time_table(files, "fp32"),
    "chains-tf32": lambda files: chain_tables.time_table(files, "tf32"),
    "achieved": chain_tables.achieved_table,
    "first-result": chain_tables.first_result_table,
    "error": chain_tables.error_table,
    "generality-fp32-summary":
        lambda files: generality_tables.sentence(files, "fp32"),
    "generality-fp32": lambda files: generality_tables.row_table(files, "fp32"),
    "generality-tf32-summary":
        lambda files: generality_tables.sentence(files, "tf32"),
    "generality-tf32": lambda files: generality_tables.row_table(files, "tf32"),
    "survey": survey_table.table,
    "latency": latency_table.table,
    "host": host_table.table,
}


def rendered(text, files):
    """`text` with every table as `files` have it. Raises ValueError for a
    comment that names no table, and for a table without one."""
    named = [match.group(2) for match in _BLOCK.finditer(text)]
    if sorted(named) != sorted(TABLES) or text.count("<!-- table:") != len(
            named):
        raise ValueError("tables of the document and of this program differ: "
                         f"{sorted(set(named) ^ set(TABLES)) or named}")

    def block(match):
        lines = map(_wrapped, TABLES[match.group(2)](files))
        return "\n".join([match.group(1), *lines, "", match.group(4)])
    return _BLOCK.sub(block, text)


def _wrapped(line):
    """Rows of tables stay in one line."""
    if line.startswith("|"):
        return line
    return textwrap.fill(line, 80, break_on_hyphens=False,
                         break_long_words=False,
                         subsequent_indent="  " * line.startswith("- "))


def difference(text, files):
    """Empty, or the lines in which `text` is not what it should be."""
    return "\n".join(difflib.unified_diff(
        text.splitlines(), rendered(text, files).splitlines(), "document",
        "bench/results", lineterm="", n=0))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    parser.add_argument("--results", type=pathlib.Path,
                        default=ROOT / "bench" / "results")
    parser.add_argument("--document", type=pathlib.Path, default=DOCUMENT)
    options = parser.parse_args()
    files = result_files.ResultFiles(options.results)
    text = options.document.read_text()
    if options.write:
        options.document.write_text(rendered(text, files))
        return
    found = difference(text, files)
    if found:
        sys.exit(f"{found}\nperformance_tables: run it with --write")


if __name__ == "__main__":
    main()
