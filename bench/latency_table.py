"""The table of docs/performance.md about launches and calls."""

import markdown

# What gpu_latency.py measures, in the document's words.
_ROWS = {
    "launch, enqueue only (C++)": "launch in process, C++, enqueue only",
    "launch and wait (C++)": "launch in process, C++, and wait",
    "launch, enqueue only (Python)": "launch in process, enqueue only",
    "launch and wait (Python)": "launch in process, and wait",
    "graph replay and wait": "replay of a CUDA graph, and wait",
    "Execute, client idle": "`Execute`, client idle",
    "  of it on the device": "of it on the device",
    "launch, then Execute": "a launch of the client's, then `Execute`",
    "Register 64 MiB": "`Register` 64 MiB",
    "Unregister": "`Unregister`",
    "compile hit": "`Compile`, hit",
}


def table(files):
    """Microseconds with and without MPS."""
    found = files.latency()
    if not found or not found["plain"]:
        return [markdown.NOT_MEASURED]
    columns = [found["plain"], found["mps"]]
    return markdown.table(
        ["what", "without MPS", "with MPS"],
        [[words, *(_cell(column, name) for column in columns)]
         for name, words in _ROWS.items()])


def _cell(column, name):
    return markdown.significant(column[name]) if name in column else "–"
