"""What the rows of the generality matrix say together."""

import math

GRADES = ("fp32", "tf32")


def of_grade(results, grade):
    """{row: facts} of {row: {grade: facts}}; a row that was not measured has
    the same facts, an error, in both."""
    return {name: row.get(grade, row) for name, row in results.items()}


def summary(results):
    """Of one grade, of one part or of the rows of several: {row: facts}."""
    timed = {name: row for name, row in results.items() if "times_ms" in row}
    seconds = [row["first_result_s"] for row in timed.values()]
    first = [s["torch_compile"] / s["kiln"] for s in seconds]
    fast = [s["torch_compile"] / s["kiln_fast"] for s in seconds]
    return {"rows": len(results),
            "wrong": sum(not row.get("ok") for row in results.values()),
            "times_compile": geometric_mean(
                row["times_compile"] for row in timed.values()),
            "times_best": geometric_mean(
                row["times_best"] for row in timed.values()),
            "first_result": geometric_mean(first),
            "first_result_least": min(first, default=0.0),
            "fast_result": geometric_mean(fast),
            "torch_startup_s": max((row["torch_startup_s"]
                                    for row in timed.values()), default=0.0),
            "below_best": [name for name, row in timed.items()
                           if row["times_best"] < 1],
            "below_compile": [name for name, row in timed.items()
                              if row["times_compile"] < 1]}


def geometric_mean(values):
    """1 of nothing."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / max(len(values), 1))
