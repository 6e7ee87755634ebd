"""The tables of docs/performance.md about the plans of generality_rows.py."""

import generality_reasons
import generality_rows
import generality_summary
import markdown
from markdown import bold, significant, times


def sentence(files, grade):
    """How many rows ran and what they say together."""
    rows = files.generality(grade)
    if not rows:
        return [markdown.NOT_MEASURED]
    found = generality_summary.summary(rows)
    timed = sum("times_ms" in row for row in rows.values())
    wrong = [name for name, row in rows.items() if not row["ok"]]
    below = sorted(found["below_best"],
                   key=lambda name: rows[name]["times_best"])
    text = [f"{len(rows)} of {len(generality_rows.ROWS)} plans ran in grade "
            f"`{grade}`, {found['wrong']} of them wrong"
            f"{_names(wrong)}; {timed} were timed. In the geometric mean Kiln "
            f"is {times(found['times_compile'])} × as fast as torch.compile "
            f"and {times(found['times_best'])} × as fast as the best of "
            f"PyTorch; {len(below)} are slower than that best."
            f"{_convolutions(rows)} First results "
            f"come {times(found['first_result'])} × sooner than "
            f"torch.compile's, at least {times(found['first_result_least'])} "
            f"×, its start-up of {found['torch_startup_s']:.1f} s left out; "
            f"those of the fast kernels {times(found['fast_result'])} × sooner."]
    if below:
        text += ["", *_losers(rows, below)]
    return text


def _convolutions(rows):
    """How fast those are that have one."""
    ratios = [row["times_compile"] for row in rows.values()
              if "times_ms" in row and row["flops"]]
    if not ratios:
        return ""
    mean = generality_summary.geometric_mean(ratios)
    return (f" On those {len(ratios)} with a convolution it is {times(mean)} × "
            "as fast as torch.compile.")


def _names(names):
    return f" ({', '.join(f'`{name}`' for name in names)})" if names else ""


def _losers(rows, below):
    return markdown.table(
        ["slower than PyTorch", "why", "best ÷ Kiln"],
        [[f"`{name}`", generality_reasons.reason(name, rows[name]),
          f"{rows[name]['times_best']:.3f}"] for name in below], 2)


def row_table(files, grade):
    """Every row, the slowest beside PyTorch first."""
    rows = files.generality(grade)
    if not rows:
        return [markdown.NOT_MEASURED]
    timed = {name: row for name, row in rows.items() if "times_ms" in row}
    ordered = sorted(timed, key=lambda name: timed[name]["times_best"])
    lines = markdown.table(
        ["plan", bold("Kiln"), "eager", "torch.compile", "max-autotune",
         "TB/s", "TFLOP/s", "of floor", "compile ÷ Kiln", "best ÷ Kiln",
         "error", "first, Kiln", "fast, Kiln", "first, compile"],
        [_cells(name, timed[name]) for name in ordered])
    untimed = [name for name in rows if name not in timed]
    if untimed:
        lines += ["", f"Not timed: {', '.join(sorted(untimed))}."]
    missing = [name for name in generality_rows.ROWS if name not in rows]
    if missing:
        lines += ["", f"Not run: {', '.join(missing)}."]
    return lines


def _cells(name, row):
    ms = {mode: spread["median"] for mode, spread in row["times_ms"].items()}
    first = row["first_result_s"]
    return [name, bold(significant(ms["kiln"])),
            *(significant(ms.get(mode))
              for mode in ("eager", "torch_compile", "max_autotune")),
            f"{row['bytes_per_s'] / 1e12:.2f}",
            f"{row['flops_per_s'] / 1e12:.1f}" if row["flops"] else "–",
            markdown.percent(row["of_floor"]), times(row["times_compile"]),
            times(row["times_best"]),
            f"{row['norm_ratio']:.2f}" if row["ok"] else "**wrong**",
            f"{first['kiln']:.3f}", f"{first['kiln_fast']:.2f}",
            f"{first['torch_compile']:.2f}"]
