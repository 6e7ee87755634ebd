"""The table of docs/performance.md about plans at random beside
torch.compile."""

import survey_summary
from generality_summary import GRADES
from markdown import NOT_MEASURED, bold, significant, table as rows_of, times


def table(files):
    """What a run that came to its end says, and its slowest plans."""
    complete = [found for found in files.of_kind("survey")
                if survey_summary.is_complete(found)]
    if not complete:
        return [NOT_MEASURED]
    found = complete[0]
    lines = [f"Of {found['plans']} plans at random, of the seeds from "
             f"{found['first_seed']} on, {len(found['timed'])} were timed, "
             f"{len(found['not_timed'])} could not be, and "
             f"{len(found['wrong'])} were wrong.{_kept(found)}", "",
             *(_sentence(found, grade) for grade in GRADES)]
    slowest = survey_summary.slowest(found)
    return lines + (["", *_slowest(slowest)] if slowest else [])


def _kept(found):
    kept = sum(map(len, found.get("kept", {}).values()))
    return (f" {kept} of them are of a run before: their kernels had not "
            "changed (`bench/same_kernels.py`)." if kept else "")


def _sentence(found, grade):
    whole = survey_summary.summary(found, grade)
    return (f"- `{grade}`, {whole['plans']} plans: "
            f"{times(whole['times_compile'])} × as fast as torch.compile in "
            f"the geometric mean, {times(whole['times_best'])} × as the best "
            "of PyTorch; at least as fast as that best in "
            f"{whole['at_least_best']}.")


def _slowest(rows):
    return rows_of(
        ["slowest beside PyTorch, seed", "grade", bold("Kiln") + ", µs",
         "torch.compile", "eager", "best ÷ Kiln"],
        [[seed, f"`{grade}`", bold(significant(us["kiln_us"])),
          significant(us["compile_us"]), significant(us["eager_us"]),
          f"{survey_summary.times_best(us):.3f}"]
         for seed, grade, us in rows], 2)
