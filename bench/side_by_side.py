"""One plan, timed as Kiln and as PyTorch on the same inputs.

Everything is replayed from CUDA graphs, so neither side pays for Python. Of
torch.compile's modes `max-autotune-no-cudagraphs` stands for max-autotune: its
own graphs would also copy every input.
"""

import contextlib
import time

import torch

import gpu_time
import kiln
import torch_plan

# Sets of inputs that take turns; what must not come out of the L2 anyway does
# not need more.
SETS = 2

# Name in the results: (torch.compile's mode or None for eager, TF32 allowed).
# PyTorch allows TF32 in convolutions unless told otherwise.
TORCH_MODES = {
    "eager": (None, True),
    "torch_compile": ("default", True),
    "eager_no_tf32": (None, False),
    "torch_compile_no_tf32": ("default", False),
    "max_autotune": ("max-autotune-no-cudagraphs", True),
}


@contextlib.contextmanager
def tf32(allowed):
    """Whether PyTorch rounds f32 operands of convolutions to TF32."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


# Of the smallest plan.
_EAGER_KERNELS = "input x: f32[1]\ny = relu(x)\noutput y\n"


def compile_eager_kernels(client):
    """Milliseconds: what the daemon does once for a cache and a kind of GPU."""
    compiled = client.compile(_EAGER_KERNELS, variant="eager")
    return compiled.timing.total_us / 1e3


def first_results(client, text, tensors, grade):
    """(the fast plan, outputs of the first kernels, of the fast ones,
    {"kiln", "kiln_fast": seconds from plan text to each}): daemon warm, its
    eager kernels compiled, cache cold, as kiln.TieredKernel goes about it."""
    torch.cuda.synchronize()
    begin = time.monotonic()
    kernel = kiln.TieredKernel(client, text, grade=grade)
    first = kernel(*tensors)
    torch.cuda.synchronize()
    seconds = {"kiln": time.monotonic() - begin}
    kernel.wait()
    fast = kernel(*tensors)
    torch.cuda.synchronize()
    seconds["kiln_fast"] = time.monotonic() - begin
    return kernel.compiled, first, fast, seconds


def time_kiln(kernel, sets):
    """{"kiln", "kiln_stream", "prepare"}: launches from a graph, launches on a
    stream, and the work that is done once per set of parameters."""
    outputs = [kernel.empty_outputs() for _ in sets]

    def launch(index):
        kernel.launch(sets[index], outputs[index], parameter_version=1)

    # Prepared once: all sets share the parameters.
    kernel.prepare(sets[0], outputs[0], 1)
    streams = [lambda i=i: launch(i) for i in range(len(sets))]
    versions = iter(range(2, 1 << 30))
    times = {"kiln_stream": gpu_time.measure(streams)}
    times["kiln"] = gpu_time.measure([gpu_time.graph_of(r) for r in streams])
    if kernel.prepare_steps:
        times["prepare"] = gpu_time.measure(
            [lambda: kernel.prepare(sets[0], outputs[0], next(versions))])
    return times


def time_torch(plan, sets, mode_name):
    """({"median", ...}, seconds to the first result)."""
    mode, allowed = TORCH_MODES[mode_name]
    function = torch_plan.as_function(plan)
    if mode is not None:
        from torch._inductor import config

        config.autotune_num_choices_displayed = 0
    begin = time.monotonic()
    with torch.no_grad(), tf32(allowed):
        if mode is not None:
            torch._dynamo.reset()
            function = torch.compile(function, mode=mode, dynamic=False)
        function(*sets[0])
        torch.cuda.synchronize()
        first_result_s = time.monotonic() - begin
        runs = [lambda i=i: function(*sets[i]) for i in range(len(sets))]
        warm_up_beside(runs)
        times = gpu_time.measure([gpu_time.graph_of(run) for run in runs])
    torch.cuda.empty_cache()
    return times, first_result_s


def warm_up_beside(runs):
    """On a stream of its own, as captures need: libraries allocate there."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for run in runs:
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()


def rotated(plan, tensors):
    """SETS sets of inputs: activations of their own, parameters shared."""
    sets = [tensors]
    while len(sets) < SETS:
        sets.append([tensor if declared.is_parameter else
                     tensor[torch.randperm(tensor.shape[0], device="cuda")]
                     if tensor.dim() else tensor.clone()
                     for declared, tensor in zip(plan.inputs, tensors)])
    return sets


def least_bytes(tensors, outputs):
    """Every input read once and every output written once."""
    return sum(t.numel() * t.element_size() for t in [*tensors, *outputs])


def least_flops(plan, tensors):
    """Of convolutions; everything else is small beside them, or memory."""
    from torch.utils.flop_counter import FlopCounterMode

    shapes = [tensor.to("meta") for tensor in tensors]
    with FlopCounterMode(display=False) as counter:
        torch_plan.evaluate(plan, shapes)
    return counter.get_total_flops()


def floor_facts(plan, tensors, outputs, copy_rate, kiln_ms):
    """How far `kiln_ms` is from moving the least bytes at the speed of a copy,
    and what it achieves."""
    size = least_bytes(tensors, outputs)
    flops = least_flops(plan, tensors)
    floor_ms = size / copy_rate * 1e3
    return {"least_bytes": size, "flops": flops, "floor_ms": floor_ms,
            "of_floor": floor_ms / kiln_ms,
            "bytes_per_s": size / (kiln_ms * 1e-3),
            "flops_per_s": flops / (kiln_ms * 1e-3)}
