"""Milliseconds of GPU work, by CUDA events."""

import statistics

import torch

_FLUSH_BYTES = 256 << 20  # five times the L2 of an H100


def milliseconds(run, repeats=20, warmups=3):
    """The median of `run()` on the current stream, with a cold L2."""
    flush = torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    for _ in range(warmups):
        run()
    times = []
    for _ in range(repeats):
        flush.fill_(1)
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def graph_of(run):
    """`run` as a CUDA graph, so that Python's time is not measured."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay
