"""One line that says what a result file found."""

import generality_summary
import survey_summary


def of_report(report):
    """Of the content of any result file."""
    kind = report["part"].split("-")[0]
    return _LINES[kind](report["results"])


def chain(result):
    """Time, achieved rates, part of the floor and the ratio to PyTorch's best
    of one chain."""
    times = result["times_ms"]
    if "kiln" not in times:
        return f"{result['chain']}: not timed, {result.get('why', '')}"
    verdict = "" if result["ok"] else f"WRONG, {result['why']}; "
    return (f"{verdict}{times['kiln']['median']:.4g} ms, {rates(result)}, "
            f"{best_ratio(times):.2f} x the best of PyTorch")


def rates(facts):
    """What floor_facts() of side_by_side.py knows."""
    flops = (f", {facts['flops_per_s'] / 1e12:.1f} TFLOP/s"
             if facts["flops"] else "")
    return (f"{facts['bytes_per_s'] / 1e12:.2f} TB/s{flops}, "
            f"{facts['of_floor']:.1%} of the floor's speed")


def best_ratio(times):
    """The fastest of PyTorch as it comes over Kiln; NaN before it is timed."""
    rivals = [times[mode]["median"]
              for mode in ("eager", "torch_compile", "max_autotune")
              if mode in times]
    if not rivals:
        return float("nan")
    return min(rivals) / times["kiln"]["median"]


def _plans(results):
    text = (f"{results['run']} of {results['plans']} plans, "
            f"{len(results['wrong'])} wrong")
    native = results.get("kiln_gpu_test")
    return text + (f"; kiln_gpu_test {native['note'][:40]}" if native else "")


def _repeats(results):
    return f"{_plans(results)}; {results['launches']:,} launches"


def _random(results):
    return (f"{_plans(results)}; {results['times_eager']:.2f} x eager "
            f"PyTorch, {len(results['slower'])} slower")


def _failures(results):
    failed = [name for name, why in results.items() if why]
    return f"{len(results)} runs, {len(failed)} not clean"


def _faults(results):
    failed = [name for name, fact in results.items() if not fact["ok"]]
    return f"{len(results)} kinds, failed: {', '.join(failed) or 'none'}"


def _chains(results):
    return "; ".join(map(chain, results.values())) or "no result"


def _generality(results):
    return "; ".join(
        _rows(generality_summary.of_grade(results, grade), grade)
        for grade in generality_summary.GRADES)


def _rows(results, grade):
    found = generality_summary.summary(results)
    return (f"{grade}: {found['rows']} rows, {found['wrong']} wrong, "
            f"{found['times_compile']:.2f} x torch.compile, "
            f"{found['times_best']:.2f} x the best, "
            f"{len(found['below_best'])} below it")


def _latency(results):
    plain = results["plain"]
    return ", ".join(f"{name} {plain[name]:.0f} us" for name in
                     ("launch and wait (C++)", "Execute, client idle",
                      "compile hit") if name in plain) or "no result"


_LINES = {"tests": _plans, "matrix": _plans, "sanitize": _failures,
          "repeat": _repeats, "random": _random,
          "survey": survey_summary.headline, "faults": _faults,
          "bench": _chains, "generality": _generality, "latency": _latency}
