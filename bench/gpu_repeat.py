"""Whether plans compute the same results, bit by bit, whenever they are
launched: what one launch in hundreds gets wrong, no comparison of one finds.
"""

import chains
import generality_rows
import gpu_cases
import gpu_matrix

# A race that one launch in a hundred loses is found in almost every run.
_LAUNCHES = 500
# Where launches and comparisons take longer than this together, fewer.
_PLAN_S = 0.4
_FEWEST = 20
# Of a plan, timed to know how many more there is time for.
TRIALS = 5


def cases():
    """The rows of generality_rows.py and the chains, "fp32/P1"; those with a
    convolution, whose operands the grade rounds, also as "tf32/P2"."""
    texts = {**generality_rows.plan_texts(), **chains.CHAINS}
    found = [gpu_cases.Case(f"fp32/{name}", text)
             for name, text in texts.items()]
    return found + [gpu_cases.Case(f"tf32/{name}", f"grade tf32\n{text}")
                    for name, text in texts.items()
                    if gpu_cases.has_convolution(text)]


def launches_after(trials_s):
    """How many more launches there is time for, where TRIALS took so long."""
    in_time = int((_PLAN_S - trials_s) / trials_s * TRIALS)
    return min(max(in_time, _FEWEST - TRIALS), _LAUNCHES - TRIALS)


def facts(differing):
    """Of one plan: launches, how many of them differ and in how many elements
    at most, and "error" if any does. `differing`: elements, by launch."""
    launches, bad = len(differing), sum(count > 0 for count in differing)
    found = {"launches": launches, "differing": bad,
             "elements": max(differing)}
    if bad:
        found["error"] = (f"{bad} of {launches} launches differ from the "
                          f"first, in {max(differing):,} elements at most")
    return found


def run(scratch, budget_s):
    """(lines, ok, report)."""
    names = [case.name for case in cases()]
    return gpu_matrix.run_part("repeat", names, scratch, budget_s,
                               "gpu_repeat_worker.py", counts, summarise)


def counts(names, results):
    """What the result file says of a run."""
    launches = [fact["launches"] for fact in results.values()
                if "launches" in fact]
    return {"plans": len(names), "run": len(results),
            "launches": sum(launches),
            "fewest_launches": min(launches, default=0),
            "wrong": {name: fact for name, fact in results.items()
                      if "error" in fact}}


def summarise(names, results):
    """(lines, ok): plans that are wrong or were not run, then how many there
    are. Those that were not run are not ok."""
    found = counts(names, results)
    missing = [name for name in names if name not in results]
    lines = [f"{name}: {fact['error']}"
             for name, fact in found["wrong"].items()]
    lines += [f"not run, out of time: {name}" for name in missing]
    lines.append(f"{found['run']} of {found['plans']} plans, "
                 f"{found['launches']:,} launches, at least "
                 f"{found['fewest_launches']} of each: "
                 f"{len(found['wrong'])} wrong")
    return lines, not missing and not found["wrong"]
