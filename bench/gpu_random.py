"""Plans that nobody has chosen (random_plans.py): whether each is right, and
the same whenever it is launched, which of them eager PyTorch is faster at, and
which take far longer than predicted: a kernel may have fallen to a slow path.
Eager alone, for torch.compile takes half a minute for some.
"""

import generality_summary
import gpu_cases
import gpu_matrix
import random_plans

PLANS = 300
# More is not what clocks and the order of runs do.
_SLOWER = 0.95
# So many times what is predicted, with what beginnings and ends of kernels take,
# which models leave out.
_BEYOND = 2.5
_BEGIN_AND_END_US = 5.0


def case_named(name):
    """The plan of "fp32/17", seed 17 in the grade fp32."""
    grade, seed = name.split("/")
    text = random_plans.text(int(seed))
    return gpu_cases.Case(name, f"grade tf32\n{text}" if grade == "tf32"
                          else text)


def names_of(first_seed, plans):
    """Each plan in both grades, where there are operands that one rounds."""
    return [f"{grade}/{seed}"
            for seed in random_plans.seeds_of_plans(first_seed, plans)
            for grade in grades_of(seed)]


def grades_of(seed):
    """Those in which a plan is not the same."""
    text = random_plans.text(seed)
    rounds = "x: f32" in text and gpu_cases.has_convolution(text)
    return ("fp32", "tf32") if rounds else ("fp32",)


def run(scratch, budget_s, first_seed):
    """(lines, ok, report)."""
    names = names_of(first_seed, PLANS)
    return gpu_matrix.run_part("random", names, scratch, budget_s,
                               "gpu_random_worker.py", counts, summarise,
                               first_seed=first_seed)


def predicted_us(explained):
    """Microseconds that a kiln.v1.ExplainResponse predicts of all kernels of a
    launch, of the variant that is taken; what launches cost is left out."""
    return sum(kernel.predicted_us
               for kernel in explained.schedule.variants[0].kernels
               if not kernel.prepares)


def counts(names, results):
    """What the result file says of a run. Plans that are wrong, or that
    PyTorch refuses, or slower than eager PyTorch, are there with their text."""
    timed = {name: fact for name, fact in results.items()
             if "times_eager" in fact}
    slower = {name: fact for name, fact in timed.items()
              if fact["times_eager"] < _SLOWER}
    return {"plans": len(names), "run": len(results),
            "launches": sum(fact.get("launches", 0)
                            for fact in results.values()),
            "times_eager": generality_summary.geometric_mean(
                [fact["times_eager"] for fact in timed.values()]),
            "ill-conditioned": sum(gpu_matrix.is_ill_conditioned(fact)
                                   for fact in results.values()),
            "beyond": {name: _with_plan(name, fact)
                       for name, fact in timed.items()
                       if _times_predicted(fact) > _BEYOND},
            "slower": {name: _with_plan(name, fact)
                       for name, fact in sorted(
                           slower.items(),
                           key=lambda item: item[1]["times_eager"])},
            "wrong": {name: _with_plan(name, fact)
                      for name, fact in results.items()
                      if "error" in fact or "refused" in fact}}


def _times_predicted(fact):
    return fact["ms"] * 1e3 / (fact["predicted_us"] + _BEGIN_AND_END_US)


def _with_plan(name, fact):
    return {**fact, "plan": case_named(name).text}


def summarise(names, results):
    """(lines, ok): plans that are slower than eager PyTorch, wrong, or were
    not run, then how many there are. Only the first are ok."""
    found = counts(names, results)
    missing = [name for name in names if name not in results]
    lines = [f"{name}: {fact['times_eager']:.2f} x as fast as eager PyTorch, "
             f"{fact['ms']:.4f} ms" for name, fact in found["slower"].items()]
    lines += [f"{name}: {_times_predicted(fact):.1f} x as long as predicted, "
              f"{fact['ms']:.4f} ms" for name, fact in found["beyond"].items()]
    lines += [f"{name}: {fact.get('error') or fact['refused']}"
              for name, fact in found["wrong"].items()]
    lines += [f"not run, out of time: {name}" for name in missing]
    lines.append(f"{found['run']} of {found['plans']} plans, "
                 f"{found['launches']:,} launches: {len(found['wrong'])} wrong;"
                 f" {found['times_eager']:.2f} x as fast as eager PyTorch in "
                 f"the geometric mean, {len(found['slower'])} slower")
    return lines, not missing and not found["wrong"]
