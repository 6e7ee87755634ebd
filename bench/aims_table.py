"""The table of docs/performance.md that puts what GPUs did beside the aims."""

import generality_summary
import markdown
from markdown import significant, times

GRADES = generality_summary.GRADES
# Milliseconds on an H100, and torch.compile's time over Kiln's in the geometric
# mean of other plans.
_AIMS = {"fp32": {"P1": 5.4, "P2": 0.32, "P3": 0.16, "P4": 3.6},
         "tf32": {"P2": 0.16, "P3": 0.08, "P4": 1.95}}
_AIMED_MEAN = 2.5
_CHAINS = tuple(_AIMS["fp32"])
_OTHER_GPUS = ("h100",)  # folders of bench/results


def table(files):
    """A line for the aims, one for each other GPU and one for this tree's."""
    if not files.chains("fp32"):
        return [markdown.NOT_MEASURED]
    found = [*map(files.below, _OTHER_GPUS), files]
    return markdown.table(
        ["ms, `fp32` / `tf32`", *_CHAINS, "others, torch.compile ÷ Kiln"],
        [["aim, on an H100", *_cells(_AIMS), times(_AIMED_MEAN)],
         *(_row(of_gpu) for of_gpu in found if of_gpu.chains("fp32"))])


def _row(files):
    medians = {grade: {name: facts["times_ms"]["kiln"]["median"]
                       for name, facts in files.chains(grade).items()}
               for grade in GRADES}
    return [_measured_on(files), *_cells(medians), _means(files)]


def _measured_on(files):
    return "; ".join(f"{gpu}, {markdown.listing(dates)}"
                     for (gpu, *_), dates in files.environments().items())


def _cells(ms):
    """One for each chain, of {grade: {chain: ms}}."""
    return [" / ".join(significant(ms[grade][name]) for grade in GRADES
                       if name in ms[grade]) for name in _CHAINS]


def _means(files):
    rows = [files.generality(grade) for grade in GRADES]
    return " / ".join(
        times(generality_summary.summary(of_grade)["times_compile"])
        for of_grade in rows if of_grade)
