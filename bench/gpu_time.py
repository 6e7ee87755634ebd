"""Milliseconds of GPU work, by CUDA events.

Before each run the L2 is flushed by writing five times its size. The GPU sleeps
before that, so that the CPU has long enqueued the run when it begins, also on a
busy machine; several runs, each on inputs of its own, take turns.
"""

import statistics

import torch

_FLUSH_BYTES = 256 << 20  # five times the L2 of an H100
_WARMUPS = 3
_MOST_REPEATS = 50
_FEWEST_REPEATS = 9
_COPY_BYTES = 2 << 30
_SLEEP_CYCLES = 600_000  # a third of a millisecond


def measure(runs, budget_s=1.0):
    """{"median", "p10", "p90", "repeats"} of calls to `runs` in turn, on the
    current stream. Repeats for about `budget_s`."""
    flush = flush_buffer()
    for index in range(max(_WARMUPS, len(runs))):
        runs[index % len(runs)]()
    estimate_ms = once(runs[0], flush)
    repeats = int(budget_s * 1e3 / max(estimate_ms, 1e-3))
    repeats = min(max(repeats, _FEWEST_REPEATS), _MOST_REPEATS)
    times = sorted(once(runs[index % len(runs)], flush)
                   for index in range(repeats))
    return {"median": statistics.median(times), "p10": times[repeats // 10],
            "p90": times[repeats - 1 - repeats // 10], "repeats": repeats}


def flush_buffer():
    """What once() writes to empty the L2."""
    return torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")


def once(run, flush):
    """Milliseconds of one call to `run`."""
    torch.cuda._sleep(_SLEEP_CYCLES)
    flush.fill_(1)
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def graph_of(run):
    """`run`, which ran before, as a CUDA graph, so that Python's time is not
    measured."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def copy_bytes_per_s():
    """What a large copy on the device reads and writes in a second."""
    source = torch.randint(0, 255, (_COPY_BYTES,), dtype=torch.uint8,
                           device="cuda")
    target = torch.empty_like(source)
    times = measure([lambda: target.copy_(source)])
    return 2 * _COPY_BYTES / (times["median"] * 1e-3)
