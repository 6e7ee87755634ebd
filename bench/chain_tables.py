"""The tables of docs/performance.md about the four chains."""

import markdown
from markdown import bold, scientific, significant

# Of PyTorch as it comes.
RIVALS = ("eager", "torch_compile", "max_autotune")
_FP32_COLUMNS = {
    "eager": "eager", "torch_compile": "torch.compile",
    "max_autotune": "max-autotune", "eager_no_tf32": "eager, no TF32",
    "torch_compile_no_tf32": "compile, no TF32"}
_TF32_COLUMNS = {"eager": "eager", "torch_compile": "torch.compile"}


def median(facts, mode):
    """Milliseconds; None if the mode was not timed."""
    found = facts["times_ms"].get(mode)
    return found and found["median"]


def rivals(files, name, grade):
    """{mode: ms} of PyTorch as it comes. max-autotune is timed once, beside
    the grade fp32."""
    facts = files.chains(grade)[name]
    found = {mode: median(facts, mode) for mode in RIVALS}
    if found["max_autotune"] is None and name in files.chains("fp32"):
        found["max_autotune"] = median(files.chains("fp32")[name],
                                       "max_autotune")
    return {mode: ms for mode, ms in found.items() if ms is not None}


def ratio_to_best(files, name, grade):
    """The fastest of PyTorch over Kiln; None if PyTorch was not timed."""
    found = rivals(files, name, grade)
    kiln = median(files.chains(grade)[name], "kiln")
    return min(found.values()) / kiln if found else None


def time_table(files, grade):
    """Milliseconds of Kiln and PyTorch."""
    chains = files.chains(grade)
    if not chains:
        return [markdown.NOT_MEASURED]
    columns = _FP32_COLUMNS if grade == "fp32" else _TF32_COLUMNS
    rows = []
    for name, facts in chains.items():
        best = ratio_to_best(files, name, grade)
        rows.append([name, bold(significant(median(facts, "kiln"))),
                     *(significant(median(facts, mode)) for mode in columns),
                     significant(facts["floor_ms"]),
                     markdown.times(best) if best else ""])
    return markdown.table(["chain", bold("Kiln"), *columns.values(), "floor",
                           "best ÷ Kiln"], rows)


def conditions(files):
    """What the tables of times leave out, in a sentence."""
    graded = [(name, grade, facts) for grade in ("fp32", "tf32")
              for name, facts in files.chains(grade).items()]
    if not graded:
        return [markdown.NOT_MEASURED]
    prepares = [f"{significant(median(facts, 'prepare'))} ms for {name} "
                f"({grade})" for name, grade, facts in graded
                if median(facts, "prepare")]
    rates = sorted({f"{facts['copy_bytes_per_s'] / 1e12:.2f}"
                    for _, _, facts in graded})
    span = rates[0] if len(rates) == 1 else f"{rates[0]} to {rates[-1]}"
    return [f"Not in Kiln's times is the packing of weights, done once: "
            f"{markdown.listing(prepares) or 'none'}. A copy moved "
            f"{span} TB/s in the same runs."]


def achieved_table(files):
    """What Kiln's medians mean, and how far they spread."""
    rows = []
    for name, grade, facts in _by_chain(files):
        spread = facts["times_ms"]["kiln"]
        rows.append([
            name, grade, significant(spread["median"]),
            f"{significant(spread['p10'])} to {significant(spread['p90'])}",
            f"{facts['bytes_per_s'] / 1e12:.2f}",
            f"{facts['flops_per_s'] / 1e12:.1f}" if facts["flops"] else "–",
            markdown.percent(facts["of_floor"]),
            significant(median(facts, "kiln_stream")),
            significant(facts["service_us"] / 1e3)])
    if not rows:
        return [markdown.NOT_MEASURED]
    return markdown.table(
        ["chain", "grade", "Kiln, ms", "10 % to 90 %", "TB/s", "TFLOP/s",
         "of the floor's speed", "on a stream, ms", "`Execute`, ms"], rows, 2)


def first_result_table(files):
    """Cold compiles, as the plan's user meets them."""
    rows = []
    for name, grade, facts in _by_chain(files):
        first = facts["first_result_s"]
        rows.append([
            name, grade, f"{first['kiln']:.3f}", f"{first['kiln_fast']:.2f}",
            f"{facts['cold_compile_ms']:.0f}", f"{facts['nvrtc_ms']:.0f}",
            *(f"{first[mode]:.1f}" if mode in first else ""
              for mode in ("torch_compile", "max_autotune"))])
    if not rows:
        return [markdown.NOT_MEASURED]
    return markdown.table(
        ["chain", "grade", "Kiln, s", "fast, s", "compile, ms",
         "of it NVRTC, ms",
         "torch.compile, s", "max-autotune, s"], rows, 2) + _once(files)


def _once(files):
    """What a cache needs once for a kind of GPU, before any plan."""
    milliseconds = [facts["eager_kernels_ms"] for _, _, facts in _by_chain(files)
                    if "eager_kernels_ms" in facts]
    if not milliseconds:
        return []
    return ["", f"The eager kernels took {min(milliseconds) / 1e3:.2f} to "
            f"{max(milliseconds) / 1e3:.2f} s to compile, once for each "
            "cache, which is not in these times."]


def error_table(files):
    """Kiln's error beside the yardstick's."""
    rows = []
    for name, grade, facts in _by_chain(files):
        verdict = "yes" if facts["ok"] else f"**no**: {facts['why']}"
        rows.append([name, grade, verdict, *(
            scientific(facts[key])
            for key in ("norm", "norm_torch", "worst", "worst_torch"))])
    if not rows:
        return [markdown.NOT_MEASURED]
    return markdown.table(
        ["chain", "grade", "within bounds", "Kiln, norm", "yardstick, norm",
         "Kiln, worst", "yardstick, worst"], rows, 3)


def _by_chain(files):
    found = [(name, grade, facts) for grade in ("fp32", "tf32")
             for name, facts in files.chains(grade).items()]
    return sorted(found, key=lambda entry: entry[:2])
