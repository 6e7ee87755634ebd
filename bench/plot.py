#!/usr/bin/env python3
"""Draws docs/performance.svg and, of the chains alone, performance-chains.svg
from the files of bench/results.

  python3 -m venv build-plot && build-plot/bin/pip install matplotlib
  build-plot/bin/python bench/plot.py          writes both
  bench/plot.py --check                        fails if one is of other numbers

Only drawing needs matplotlib.
"""

import argparse
import pathlib
import sys

import markdown
import plot_facts
import result_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURES = ("performance.svg", "performance-chains.svg")

_TITLES = {"P1": "P1  group norm", "P2": "P2  conv … logsumexp",
           "P3": "P3  conv … max pool", "P4": "P4  transposed conv"}
_KILN, _KILN_TF32 = "#0b6e4f", "#58b68f"
_COLORS = {"Kiln, fp32": _KILN, "Kiln, tf32": _KILN_TF32, "eager": "#b9bec5",
           "torch.compile": "#8a929c", "max-autotune": "#5d6670"}
_BARS = tuple(_COLORS)
_LOSES = "#b3261e"
_TEXT, _FAINT = "#22262b", "#e3e6ea"
_WIDTH_IN = 9.4
_CHAINS_IN, _ROW_IN, _MARGIN_IN, _CAPTION_IN = 2.75, 0.155, 1.2, 0.6
_STYLE = {"font.size": 9, "text.color": _TEXT, "axes.labelcolor": _TEXT,
          "axes.edgecolor": "#9aa1a9", "xtick.color": _TEXT,
          "ytick.color": _TEXT, "axes.spines.top": False,
          "axes.spines.right": False, "axes.titlesize": 10,
          "axes.titleweight": "bold", "svg.hashsalt": "kiln"}


def draw(found, path, with_rows):
    """Writes an SVG, or by its name a PNG, with the other plans or without."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(_STYLE)
    import matplotlib.pyplot as pyplot

    rows = len(_row_names(found["rows"])) if with_rows else 0
    rows_in = rows * _ROW_IN + _MARGIN_IN if rows else 0.0
    height = _CHAINS_IN + rows_in + _CAPTION_IN
    figure = pyplot.figure(figsize=(_WIDTH_IN, height), facecolor="white")
    _draw_chains(figure, found["chains"], height)
    if rows:
        _draw_rows(figure, found, height)
    figure.text(0.01, 0.1 / height, _caption(found, with_rows),
                size=7.5, color="#5d6670")
    is_svg = path.suffix == ".svg"
    figure.savefig(path, dpi=100, metadata={
        "Date": None, "Description":
        f"data {plot_facts.fingerprint(found)}"} if is_svg else None)


def _caption(found, with_rows):
    missing = [grade for grade in plot_facts.GRADES
               if with_rows and not found["rows"][grade]]
    text = (f"{found['caption']}\nMedians, cold L2, from CUDA graphs; PyTorch "
            "may round operands of convolutions to TF32 and Kiln's fp32 does "
            "not. Dashed: the bytes that must move, at the speed of a copy.")
    if missing:
        text += (f"\nOther plans, {markdown.listing(missing)}: not measured "
                 "with this tree.")
    return text


def _draw_chains(figure, chains, height):
    """A panel for each chain, all with the same bars."""
    axes = figure.subplots(1, max(len(chains), 1), sharey=True, squeeze=False,
                           gridspec_kw={
                               "left": 0.115, "right": 0.985, "wspace": 0.12,
                               "top": 1 - 0.62 / height,
                               "bottom": 1 - (_CHAINS_IN - 0.55) / height})
    figure.text(0.01, 1 - 0.25 / height,
                "Time of the four chains, milliseconds (less is better)",
                size=11, weight="bold")
    for axis, (name, chain) in zip(axes[0], chains.items()):
        _draw_chain(axis, name, chain)


def _draw_chain(axis, name, chain):
    import matplotlib.ticker

    labels = [label for label in _BARS if label in chain["bars"]]
    values = [chain["bars"][label] for label in labels]
    places = [_BARS.index(label) for label in labels]
    axis.barh(places, values, color=[_COLORS[label] for label in labels],
              height=0.72)
    for place, value, label in zip(places, values, labels):
        axis.text(value, place, f" {markdown.significant(value)}", va="center",
                  size=8.5,
                  weight="bold" if label.startswith("Kiln") else "normal")
    axis.axvline(chain["floor"], color=_TEXT, linewidth=0.9, linestyle=(0, (
        3, 2)))
    for place, label in enumerate(_BARS):
        if label not in labels:
            axis.text(0, place, "  –", va="center", size=8.5)
    axis.set_xlim(0, max(values) * 1.24)
    axis.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(4))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_ylim(len(_BARS) - 0.5, -0.5)
    axis.set_yticks(range(len(_BARS)), _BARS)
    axis.tick_params(axis="y", length=0)
    axis.set_title(_TITLES.get(name, name), loc="left", size=9)
    axis.set_xlabel("ms", size=8.5)


def _row_names(rows):
    """Of all grades, the slowest beside PyTorch first."""
    fp32, tf32 = (rows[grade] for grade in plot_facts.GRADES)
    return sorted({**tf32, **fp32},
                  key=lambda name: fp32.get(name, tf32.get(name)))


def _draw_rows(figure, found, height):
    """A line for each plan, a dot for each grade, on a logarithmic axis."""
    names = _row_names(found["rows"])
    axis = figure.add_axes((0.235, (_CAPTION_IN + 0.55) / height, 0.74,
                            len(names) * _ROW_IN / height))
    figure.text(0.01, 1 - (_CHAINS_IN + 0.25) / height,
                "Other plans: how many times as fast as the best of PyTorch "
                "(more is better)", size=11, weight="bold")
    for place, name in enumerate(names):
        ends = [found["rows"][grade][name] for grade in plot_facts.GRADES
                if name in found["rows"][grade]]
        axis.plot((min(ends), max(ends)), (place, place), color="#b9d9cb",
                  linewidth=2, zorder=2)
    for grade, color in zip(plot_facts.GRADES, (_KILN, _KILN_TF32)):
        _draw_dots(axis, names, found, grade, color)
    axis.axvline(1, color=_TEXT, linewidth=1, zorder=1)
    _scale_rows(axis, names, found["rows"])
    legend = axis.legend(loc="lower right", bbox_to_anchor=(1.01, 1), ncols=2,
                         frameon=False, fontsize=8.5, handletextpad=0)
    for handle, color in zip(legend.legend_handles, _drawn_colors(found)):
        handle.set_color(color)


def _drawn_colors(found):
    return [color for grade, color in zip(plot_facts.GRADES,
                                          (_KILN, _KILN_TF32))
            if found["rows"][grade]]


def _draw_dots(axis, names, found, grade, color):
    ratios = found["rows"][grade]
    if not ratios:
        return
    places = [place for place, name in enumerate(names) if name in ratios]
    values = [ratios[names[place]] for place in places]
    mean = found["means"][grade]
    axis.scatter(values, places, s=22, zorder=3 if grade == "tf32" else 4,
                 color=[color if value >= 1 else _LOSES for value in values],
                 marker="o" if grade == "fp32" else "D",
                 label=f"{grade}: geometric mean "
                 f"{markdown.times(mean['times_best'])} × the best, "
                 f"{markdown.times(mean['times_compile'])} × torch.compile")


def _scale_rows(axis, names, rows):
    import matplotlib.ticker

    values = [value for ratios in rows.values() for value in ratios.values()]
    axis.set_xscale("log")
    axis.set_xlim(min(values) / 1.15, max(values) * 1.15)
    axis.xaxis.set_major_locator(matplotlib.ticker.FixedLocator(
        [0.25, 0.5, 1, 2, 4, 8, 16]))
    axis.xaxis.set_major_formatter("{x:g} ×")
    axis.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axis.set_ylim(len(names) - 0.5, -0.8)
    axis.set_yticks(range(len(names)), names, size=7.5)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="both", color=_FAINT, linewidth=0.7)
    axis.set_axisbelow(True)
    axis.set_xlabel("fastest mode of PyTorch ÷ Kiln (red: Kiln is slower)")


def outdated(found, folder):
    """The pictures in `folder` that are not of these numbers."""
    fingerprint = plot_facts.fingerprint(found)
    return [name for name in PICTURES
            if not (folder / name).exists() or
            fingerprint not in (folder / name).read_text()]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=pathlib.Path,
                        default=ROOT / "bench" / "results")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs",
                        help="the folder of both pictures")
    options = parser.parse_args()
    found = plot_facts.facts(result_files.ResultFiles(options.results))
    if not options.check:
        for name, with_rows in zip(PICTURES, (True, False)):
            draw(found, options.out / name, with_rows)
    elif old := outdated(found, options.out):
        sys.exit(f"plot: {', '.join(old)}: of other numbers; draw again")


if __name__ == "__main__":
    main()
