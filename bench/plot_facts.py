"""The numbers that bench/plot.py draws, and their fingerprint, by which a
picture shows that it is of these numbers. Needs nothing but Python."""

import hashlib
import json

import chain_tables
import generality_summary
import markdown

MODES = {"eager": "eager", "torch_compile": "torch.compile",
         "max_autotune": "max-autotune"}
GRADES = ("fp32", "tf32")


def facts(files):
    """{"chains": {"P1": {...}}, "rows": {grade: {name: ratio}}, ...}."""
    return {"chains": _chains(files),
            "rows": {grade: _ratios(files.generality(grade))
                     for grade in GRADES},
            "means": {grade: _means(files.generality(grade))
                      for grade in GRADES},
            "caption": _caption(files)}


def fingerprint(found):
    """Of what facts() returned."""
    text = json.dumps(found, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _chains(files):
    """Milliseconds of each bar, and of the floor."""
    chains = {}
    for name, measured in files.chains("fp32").items():
        bars = {"Kiln, fp32": chain_tables.median(measured, "kiln")}
        if name in files.chains("tf32"):
            bars["Kiln, tf32"] = chain_tables.median(
                files.chains("tf32")[name], "kiln")
        for mode, label in MODES.items():
            ms = chain_tables.median(measured, mode)
            if ms is not None:
                bars[label] = ms
        chains[name] = {"bars": bars, "floor": measured["floor_ms"]}
    return chains


def _ratios(rows):
    """How many times as fast as the best of PyTorch."""
    return {name: row["times_best"] for name, row in rows.items()
            if "times_ms" in row}


def _means(rows):
    return rows and {key: generality_summary.summary(rows)[key]
                     for key in ("times_best", "times_compile")}


def _caption(files):
    return "; ".join(
        f"{gpu}, {markdown.listing(dates)}, driver {driver}, NVRTC {nvrtc}, "
        f"PyTorch {torch}" for (gpu, driver, nvrtc, torch), dates
        in files.environments().items())
