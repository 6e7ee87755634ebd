"""The table of docs/performance.md about a host without a GPU."""

import markdown


def table(files):
    """Of the result file "host"."""
    report = files.reports.get("host")
    return lines(report) if report else [markdown.NOT_MEASURED]


def lines(report):
    """Of what host_times.py found."""
    results = report["results"]
    hit = results["hit"]
    rows = [[row["plan"], row["target"], f"{row['total_ms']:.0f}",
             f"{row['outside_nvrtc_ms']:.1f}"] for row in results["compile"]]
    repeats = min(row["repeats"] for row in results["compile"])
    return [
        f"On {report['date']}, {report['cpu']}, {report['cores']} cores of "
        f"which {report['load']:.1f} were busy before, NVRTC "
        f"{report['nvrtc']}; medians of {repeats}, milliseconds:", "",
        *markdown.table(["plan", "target", "until the artifact",
                         "of it outside NVRTC"], rows, 2), "",
        f"A hit took {hit['memory']['ratio']:.2f} times an empty call to the "
        f"same daemon ({hit['memory']['empty_us']:.0f} µs), with the artifact "
        f"{hit['artifact']['ratio']:.2f} times, and from disk after a restart "
        f"{hit['disk']['median_us'] / 1e3:.2f} ms (`kiln_rpc_latency`, "
        "interleaved)."]
