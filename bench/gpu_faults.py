"""What happens to the others when a client is killed or a kernel goes wrong.

    gpu_faults.py victim SOCKET       registers and executes until killed
"""

import hashlib
import random
import struct
import subprocess
import sys
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

BODIES = {
    "illegal address": "*reinterpret_cast<volatile int*>(16) = 1;",
    "endless kernel": "volatile int go = 1; while (go) {}",
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
        process = subprocess.Popen(
            [sys.executable, __file__, "victim", daemon.socket],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.readline()  # it has worked once
        time.sleep(random.uniform(0, 0.3))
        process.kill()
        process.wait()
        give_up = time.monotonic() + 5
        while (baseline - free_bytes() > _TOLERANCE_BYTES and
               time.monotonic() < give_up):
            time.sleep(0.05)
        worst = max(worst, baseline - free_bytes())
        checker.execute()
    return {"ok": worst <= _TOLERANCE_BYTES,
            "note": f"{KILLS} kills leave {worst / 2**20:.0f} MiB"}


def wrong_artifact(client, body):
    """WRONG_PLAN's artifact with a kernel that only does `body`."""
    from cuda.bindings import nvrtc

    from kiln.client import current_target

    artifact = client.compile(WRONG_PLAN).artifact
    step = artifact.variants[-1].launch[0]
    module = artifact.modules[step.module]
    parameters = ", ".join(f"Bytes<{_bytes(arg)}> p{i}"
                           for i, arg in enumerate(step.args))
    source = ("template <int n> struct alignas(n < 8 ? 4 : 8) Bytes "
              "{ char b[n]; };\n" f'extern "C" __global__ void '
              f"{module.entries[step.entry].symbol}({parameters}) "
              f"{{ {body} }}\n")
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"wrong.cu", 0, [],
                                          [])
    arch = current_target().split("/")[0].encode()
    (error,) = nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=" + arch])
    if int(error) != 0:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.decode())
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = b" " * size
    nvrtc.nvrtcGetCUBIN(program, cubin)
    module.cubin = cubin
    module.sha256 = hashlib.sha256(cubin).hexdigest()
    return artifact


def _bytes(arg):
    kind = arg.WhichOneof("arg")
    return len(arg.constant) if kind == "constant" else 8


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


def wrong_kernel(daemon):
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
            except AssertionError as error:
                lies.append(str(error))
    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)

    compiled = culprit.client.compile(WRONG_PLAN)
    y = torch.empty_like(culprit.x)
    begin = time.monotonic()
    try:
        culprit.session.execute(compiled, [culprit.x], [y])
        verdict = "OK"
    except KilnError as error:
        verdict = error.code
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
    ok = (verdict == "ABORTED" and not lies and told > 0 and
          recovered is not None and recovered <= _RECOVERY_S and
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
        client = daemon.connect()
        wrong = {name: wrong_artifact(client, body)
                 for name, body in BODIES.items()}
    for name, artifact in wrong.items():
        def fill(cache, artifact=artifact):
            store(cache, artifact)
        with gpu_daemon.running(fill_cache=fill) as daemon:
            results[name] = _guarded(wrong_kernel, daemon)
    ok = all(result["ok"] for result in results.values())
    with gpu_daemon.running() as daemon, daemon.connect() as client:
        report = gpu_report.report("faults", client, ok, results)
    return [f"{name:18}{'ok' if r['ok'] else 'FAILED':8}{r['note']}"
            for name, r in results.items()], ok, report


def _guarded(check, daemon):
    try:
        return check(daemon)
    except Exception as error:
        return {"ok": False,
                "note": f"{error!r} {daemon.log_tail(800)}"}


if __name__ == "__main__":
    victim(sys.argv[2])
