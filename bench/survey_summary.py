"""What the part "survey" of gpu_check keeps of its plans, and what they say
together. Needs nothing but Python.

A fact of a plan, by its seed, is one of

  {"us": {"eager": 9.1, "compile": 8.0, "fp32": 5.2, "tf32": 4.1}}, and
      "compiler" of an earlier tree, whose kernels are the same
  {"not_timed": "compile: BackendCompilerFailed: ..."}   of PyTorch, or no room
  {"error": "output 0: ...", "grade": "tf32"}            of Kiln
"""

from generality_summary import GRADES, geometric_mean

OUT_OF_TIME = "out of time"
_MOST_NAMED = 12


def results(first_seed, facts):
    """What the result file says of {seed: fact}."""
    return {"first_seed": first_seed, "plans": len(facts),
            "timed": {str(seed): _by_grade(fact["us"])
                      for seed, fact in facts.items() if "us" in fact},
            "kept": _by_compiler(facts),
            "not_timed": {str(seed): fact["not_timed"]
                          for seed, fact in facts.items()
                          if "not_timed" in fact},
            "wrong": {f"{fact['grade']}/{seed}": fact["error"]
                      for seed, fact in facts.items() if "error" in fact}}


def _by_compiler(facts):
    """{digest: seeds} of those that were timed with an earlier tree."""
    found = {}
    for seed, fact in facts.items():
        if "compiler" in fact:
            found.setdefault(fact["compiler"], []).append(seed)
    return found


def fact_of(found, seed):
    """The fact of a plan of results() that was timed."""
    grades = found["timed"][seed]
    times = next(iter(grades.values()))
    fact = {"us": {"eager": times["eager_us"], "compile": times["compile_us"],
                   **{grade: one["kiln_us"] for grade, one in grades.items()}}}
    for compiler, seeds in found.get("kept", {}).items():
        if int(seed) in seeds:
            fact["compiler"] = compiler
    return fact


def _by_grade(times):
    """PyTorch is timed once, as it comes, beside both grades of Kiln."""
    return {grade: {"kiln_us": times[grade], "compile_us": times["compile"],
                    "eager_us": times["eager"]}
            for grade in GRADES if grade in times}


def is_complete(found):
    """Whether no plan of results() was left out for want of time."""
    return OUT_OF_TIME not in found["not_timed"].values()


def times_best(times):
    """The best of PyTorch over Kiln."""
    return min(times["compile_us"], times["eager_us"]) / times["kiln_us"]


def summary(found, grade):
    """Of one grade of results(). "slower": seeds of the plans that the best of
    PyTorch is faster at, the slowest first."""
    timed = {seed: grades[grade] for seed, grades in found["timed"].items()
             if grade in grades}
    slower = [seed for seed, times in timed.items() if times_best(times) < 1]
    return {"plans": len(timed),
            "wrong": sum(name.startswith(f"{grade}/")
                         for name in found["wrong"]),
            "times_compile": geometric_mean(
                times["compile_us"] / times["kiln_us"]
                for times in timed.values()),
            "times_best": geometric_mean(map(times_best, timed.values())),
            "at_least_best": len(timed) - len(slower),
            "slower": sorted(slower, key=lambda seed: times_best(timed[seed]))}


def slowest(found, grade=None):
    """(seed, grade, times) of plans that the best of PyTorch is faster at, the
    slowest first, twelve at most; of both grades unless `grade` is given."""
    rows = [(seed, one, found["timed"][seed][one])
            for one in ([grade] if grade else GRADES)
            for seed in summary(found, one)["slower"]]
    return sorted(rows, key=lambda row: times_best(row[2]))[:_MOST_NAMED]


def lines(found):
    """For people: what is wrong, what was not timed and why, the slowest of
    each grade, then each grade's summary."""
    told = [f"{name}: WRONG: {why}" for name, why in found["wrong"].items()]
    for why in dict.fromkeys(found["not_timed"].values()):
        seeds = [seed for seed, other in found["not_timed"].items()
                 if other == why]
        told.append(f"not timed, {why}: {', '.join(seeds)}")
    for grade in GRADES:
        told += [_line(seed, grade, times)
                 for seed, grade, times in slowest(found, grade)]
    return told + [_line_of_grade(found, grade) for grade in GRADES]


def _line(seed, grade, times):
    return (f"{grade}/{seed}: {times_best(times):.2f} x as fast as the best of "
            f"PyTorch: {times['kiln_us']:.1f} us, torch.compile "
            f"{times['compile_us']:.1f}, eager {times['eager_us']:.1f}")


def _line_of_grade(found, grade):
    whole = summary(found, grade)
    return (f"{grade}: {whole['plans']} plans timed, {whole['wrong']} wrong; "
            f"{whole['times_compile']:.2f} x as fast as torch.compile in the "
            f"geometric mean, {whole['times_best']:.2f} x as the best of "
            f"PyTorch, at least as fast as that best in "
            f"{whole['at_least_best']}")


def headline(found):
    """One line."""
    return "; ".join(
        [f"{len(found['timed'])} of {found['plans']} plans timed, "
         f"{len(found['wrong'])} wrong",
         *(f"{grade}: {whole['times_compile']:.2f} x torch.compile, "
           f"{len(whole['slower'])} below the best"
           for grade in GRADES for whole in [summary(found, grade)])])
