"""Latencies of the ways to run a plan, with and without MPS.

    gpu_latency.py SOCKET      measures in this process, prints JSON
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import gpu_daemon

# Small enough that launching, not computing, is what takes time.
PLAN = """
input x: f32[8,64,32,32]
param weight: f32[64]
param bias: f32[64]
y = group_norm(x, weight, bias, num_groups=8)
output y
"""


def microseconds(call, repeats):
    """Median wall time of `call()`."""
    for _ in range(max(3, repeats // 20)):
        call()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times) / 1e3


def measure(socket):
    """{what: microseconds} in this process."""
    import torch

    import kiln

    client = kiln.connect(socket, auto_start=False)
    compiled = client.compile(PLAN)
    tensors = [torch.randn(8, 64, 32, 32, device="cuda"),
               torch.randn(64, device="cuda"), torch.randn(64, device="cuda")]
    kernel = kiln.TorchKernel(compiled)
    outputs = kernel.empty_outputs()
    session = client.attach()

    def launch():
        kernel.launch(tensors, outputs, parameter_version=1)

    def launch_and_wait():
        launch()
        torch.cuda.synchronize()

    def execute():
        return session.execute(compiled, tensors, outputs,
                               parameter_version=1)

    def alternate():
        launch_and_wait()
        execute()

    result = {}
    kernel.prepare(tensors, outputs, parameter_version=1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    result["compile hit"] = microseconds(lambda: client.compile(PLAN), 200)
    result["launch, enqueue only (Python)"] = microseconds(launch, 300)
    torch.cuda.synchronize()
    result["launch and wait (Python)"] = microseconds(launch_and_wait, 300)

    def replay():
        graph.replay()
        torch.cuda.synchronize()
    result["graph replay and wait"] = microseconds(replay, 300)
    result["Execute, client idle"] = microseconds(execute, 300)
    result["  of it on the device"] = execute().execute_us
    result["launch, then Execute"] = microseconds(alternate, 200)
    result.update(_registration(client, session))
    session.close()
    result.update(_in_cpp(compiled))
    return result


def _in_cpp(compiled):
    """What a C++ program pays for a launch through jit/run; "error" if it
    does not run."""
    with tempfile.NamedTemporaryFile(suffix=".kiln") as file:
        file.write(compiled.artifact.SerializeToString())
        file.flush()
        done = subprocess.run(
            [str(gpu_daemon.BUNDLE / "bin" / "kiln_latency"), file.name],
            capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return {"error": f"kiln_latency: {done.stderr[-500:]}"}
    times = json.loads(done.stdout)
    return {"launch, enqueue only (C++)": times["enqueue_us"],
            "launch and wait (C++)": times["launch_and_wait_us"]}


def _registration(client, session):
    """Register and Unregister of allocations of their own."""
    import torch

    from kiln.messages import schema

    registered, times = [], []
    for _ in range(20):
        tensor = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
        begin = time.perf_counter_ns()
        buffer, _ = session.register(tensor)
        times.append(time.perf_counter_ns() - begin)
        registered.append((buffer, tensor))
    leave = []
    for buffer, _ in registered:
        begin = time.perf_counter_ns()
        client.call("Buffers", "Unregister", schema().UnregisterRequest(
            session=session.id, buffer=buffer))
        leave.append(time.perf_counter_ns() - begin)
    return {"Register 64 MiB": statistics.median(times) / 1e3,
            "Unregister": statistics.median(leave) / 1e3}


@contextlib.contextmanager
def mps():
    """The environment of processes that share an MPS server, or None."""
    path = os.pathsep.join([os.environ.get("PATH", ""),
                            "/usr/local/nvidia/bin"])
    control = shutil.which("nvidia-cuda-mps-control", path=path)
    with tempfile.TemporaryDirectory(prefix="kiln-mps-",
                                     ignore_cleanup_errors=True) as folder:
        env = {"CUDA_MPS_PIPE_DIRECTORY": folder,
               "CUDA_MPS_LOG_DIRECTORY": folder, "PATH": path}
        if control is None or subprocess.run(
                [control, "-d"], env={**os.environ, **env},
                capture_output=True).returncode != 0:
            yield None
            return
        try:
            yield env
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run([control], input="quit -t 10\n", text=True,
                               env={**os.environ, **env}, capture_output=True,
                               timeout=30)


def _measure_with(env):
    """Measures in a process of its own; what went wrong as text."""
    try:
        with gpu_daemon.running(env=env) as daemon:
            done = subprocess.run(
                [sys.executable, __file__, daemon.socket],
                capture_output=True, text=True, timeout=150,
                env={**os.environ, **env})
            if done.returncode != 0:
                log = daemon.log_tail()
                return {}, (done.stdout + done.stderr + log)[-1500:]
            times = json.loads(done.stdout.splitlines()[-1])
            return times, times.pop("error", "")
    except (subprocess.TimeoutExpired, RuntimeError) as error:
        return {}, str(error)[-1500:]


def run():
    import gpu_report

    plain, failure = _measure_with({})
    with mps() as env:
        shared, why = ({}, "MPS does not start here") if env is None else (
            _measure_with(env))
    # Without MPS on the machine the part is ok; a failure under it is not.
    ok = not failure and (env is None or not why)
    lines = [text for text in (failure, why) if text]
    lines.append(f"{'microseconds, median':34}{'without MPS':>13}"
                 f"{'with MPS':>11}")
    for name, value in plain.items():
        other = f"{shared[name]:11.1f}" if name in shared else f"{'-':>11}"
        lines.append(f"{name:34}{value:13.1f}{other}")
    with gpu_daemon.running() as daemon, daemon.connect() as client:
        report = gpu_report.report("latency", client, ok,
                                   {"plain": plain, "mps": shared,
                                    "mps_note": why})
    return lines, ok, report


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
