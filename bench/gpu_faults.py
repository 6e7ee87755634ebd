"""What happens to the others when a client is killed or a kernel goes wrong.

    gpu_faults.py victim SOCKET       registers and executes until killed
"""

import dataclasses
import hashlib
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time

import gpu_daemon

PLAN = "input x: f32[1024,1024]\ny = relu(x)\noutput y\n"
# Another key; its kernels are the ones that are replaced by wrong ones.
WRONG_PLAN = "input x: f32[1024,1024]\ny = neg(x)\noutput y\n"
KILLS = 10
_RECOVERY_S = 2.0
_RETRYABLE = ("ABORTED", "UNAVAILABLE", "FAILED_PRECONDITION")
_TOLERANCE_BYTES = 32 << 20
_START_S = 60.0

# Stands for a parameter of n bytes.
_BYTES = ("template <int n> struct alignas(n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : "
          "1) Bytes { char b[n]; };\n")


@dataclasses.dataclass(frozen=True)
class Fault:
    """What kernels do instead of their work, and what the caller is told."""

    body: str
    code: str
    global_variable: str = ""


# The loop reads memory that the host could write. A volatile local variable
# will not do: the compiler keeps it in a register, sees a loop without effects
# and removes it.
FAULTS = {
    "illegal address": Fault("*reinterpret_cast<volatile int*>(16) = 1;",
                             "ABORTED"),
    "endless kernel": Fault("while (go_on) __nanosleep(1000);",
                            "DEADLINE_EXCEEDED",
                            "__device__ volatile int go_on = 1;\n"),
}


def victim(socket):
    import torch

    import kiln

    client = kiln.connect(socket, auto_start=False)
    session = client.attach()
    compiled = client.compile(PLAN)
    while True:
        x = torch.randn(1024, 1024, device="cuda")
        large = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        session.register(large)
        y = torch.empty_like(x)
        for _ in range(20):
            session.execute(compiled, [x], [y])
        print("working", flush=True)


class Client:
    """Executes PLAN and checks the result."""

    def __init__(self, daemon):
        import torch

        self.client = daemon.connect()
        self.session = self.client.attach()
        self.compiled = self.client.compile(PLAN)
        self.x = torch.randn(1024, 1024, device="cuda")

    def execute(self):
        """Raises KilnError, or AssertionError for a wrong success."""
        import torch

        y = torch.full_like(self.x, float("nan"))
        self.session.execute(self.compiled, [self.x], [y])
        torch.cuda.synchronize()
        assert torch.equal(y, self.x.relu()), "the daemon lied about success"


def kills(daemon):
    """A client killed -9 at ten points leaves no memory behind."""
    import torch

    checker = Client(daemon)
    checker.execute()

    def free_bytes():
        return torch.cuda.mem_get_info()[0]

    baseline, worst = free_bytes(), 0
    for _ in range(KILLS):
        _kill_a_victim(daemon.socket)
        give_up = time.monotonic() + 5
        while (baseline - free_bytes() > _TOLERANCE_BYTES and
               time.monotonic() < give_up):
            time.sleep(0.05)
        worst = max(worst, baseline - free_bytes())
        checker.execute()
    return {"ok": worst <= _TOLERANCE_BYTES,
            "note": f"{KILLS} kills leave {worst / 2**20:.0f} MiB"}


def _kill_a_victim(socket):
    """Starts a client and kills it at a random point of its work."""
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
            [sys.executable, __file__, "victim", socket],
            stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        too_long = threading.Timer(_START_S, process.kill)
        too_long.start()
        line = process.stdout.readline()
        too_long.cancel()
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        process.wait()
        errors.seek(0)
        if line != "working\n":
            raise RuntimeError(f"the victim never worked: "
                               f"{errors.read()[-800:]}")


def wrong_artifact(client, fault):
    """WRONG_PLAN's artifact with kernels that do nothing but `fault`."""
    from kiln.client import current_target

    artifact = client.compile(WRONG_PLAN).artifact
    arch = current_target().split("/")[0]
    steps = [step for variant in artifact.variants
             for step in [*variant.prepare, *variant.launch]]
    for index, module in enumerate(artifact.modules):
        kernels = {}
        for step in steps:
            if step.module == index:
                symbol = module.entries[step.entry].symbol
                kernels[symbol] = _kernel(symbol, step.args, fault.body)
        module.cubin = _compiled(
            _BYTES + fault.global_variable + "".join(kernels.values()), arch)
        module.sha256 = hashlib.sha256(module.cubin).hexdigest()
    return artifact


def _kernel(symbol, args, body):
    parameters = ", ".join(f"Bytes<{_bytes(arg)}> p{i}"
                           for i, arg in enumerate(args))
    return (f'extern "C" __global__ void {symbol}({parameters}) '
            f"{{ {body} }}\n")


def _compiled(source, arch):
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"wrong.cu", 0, [],
                                          [])
    option = f"-arch={arch}".encode()
    (error,) = nvrtc.nvrtcCompileProgram(program, 1, [option])
    if int(error) != 0:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = b" " * size
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin


def _bytes(arg):
    sizes = {"constant": len(arg.constant), "tensor_map": 128}
    return sizes.get(arg.WhichOneof("arg"), 8)


def store(cache, artifact):
    """Puts an artifact into a daemon's cache (format: cache/entry_format.h),
    as a damaged compiler would."""
    payload = artifact.SerializeToString(deterministic=True)
    text = artifact.key_text.encode()
    body = b"KILN\r\n\x1a\n" + struct.pack("<IIQ", 1, len(text), len(payload))
    body += b"gpu_faults".ljust(16, b"\0")
    body += artifact.key.encode() + text + payload
    folder = cache / "entries" / artifact.key[:2]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{artifact.key}.kiln"
    path.write_bytes(body + hashlib.sha256(body).digest())


def wrong_kernel(daemon, fault):
    """One session runs the wrong kernel; another one keeps working."""
    import torch

    from kiln.errors import KilnError

    neighbour, culprit = Client(daemon), Client(daemon)
    neighbour.execute()
    codes, lies, stop = [], [], threading.Event()

    def work():
        while not stop.is_set():
            try:
                neighbour.execute()
            except KilnError as error:
                codes.append(error.code)
                time.sleep(0.02)
            except Exception as error:
                lies.append(repr(error))
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(0.3)

    compiled = culprit.client.compile(WRONG_PLAN)
    y = torch.empty_like(culprit.x)
    begin = time.monotonic()
    try:
        culprit.session.execute(compiled, [culprit.x], [y])
        verdict, message = "OK", ""
    except KilnError as error:
        verdict, message = error.code, error.message
    ended = time.monotonic()
    recovered = None
    while time.monotonic() - ended < 10:
        try:
            culprit.execute()
            recovered = time.monotonic() - ended
            break
        except KilnError:
            time.sleep(0.02)
    time.sleep(0.5)
    stop.set()
    thread.join()
    told = len(culprit.session.restarts)
    ok = (verdict == fault.code and "Register buffers again" in message and
          not lies and told > 0 and recovered is not None and
          recovered <= _RECOVERY_S and
          all(code in _RETRYABLE for code in codes))
    return {"ok": ok, "note": (
        f"{compiled.source} {verdict} after {ended - begin:.2f} s, works "
        f"again after {recovered and round(recovered, 2)} s, restarted events "
        f"{told}, neighbour: {sorted(set(codes))} lies {len(lies)}")}


def run():
    import gpu_report

    results = {}
    with gpu_daemon.running() as daemon:
        results["kill -9"] = _guarded(kills, daemon)
    for name, fault in FAULTS.items():
        results[name] = _wrong_kernel_in_cache(fault)
    ok = all(result["ok"] for result in results.values())
    with gpu_daemon.running() as daemon, daemon.connect() as client:
        report = gpu_report.report("faults", client, ok, results)
    return [f"{name:18}{'ok' if r['ok'] else 'FAILED':8}{r['note']}"
            for name, r in results.items()], ok, report


def _wrong_kernel_in_cache(fault):
    artifacts = []

    def build(daemon):
        artifacts.append(wrong_artifact(daemon.connect(), fault))
        return {"ok": True, "note": ""}
    with gpu_daemon.running() as daemon:
        built = _guarded(build, daemon)
    if not built["ok"]:
        return built
    with gpu_daemon.running(
            fill_cache=lambda cache: store(cache, artifacts[0])) as daemon:
        return _guarded(wrong_kernel, daemon, fault)


def _guarded(check, daemon, *arguments):
    try:
        return check(daemon, *arguments)
    except Exception as error:
        return {"ok": False,
                "note": f"{error!r} {daemon.log_tail(800)}"}


if __name__ == "__main__":
    victim(sys.argv[2])
