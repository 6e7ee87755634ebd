"""A private kilnd of the bundle, with a cache and socket of its own."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUNDLE = ROOT / "build-gpu" / "bundle"
sys.path[:0] = [str(BUNDLE / "python"), str(ROOT / "bench"),
                str(ROOT / "tests" / "goldens")]


def nvrtc_folder():
    """The folder of libnvrtc: PyTorch's wheels, else a toolkit."""
    roots = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    places = [path for root in sorted(roots)
              for path in pathlib.Path(root, "nvidia").glob("*/lib")]
    places += pathlib.Path("/usr/local").glob("cuda*/lib64")
    places += pathlib.Path("/usr/local").glob("cuda*/targets/*/lib")
    for place in places:
        if any(place.glob("libnvrtc.so.*")):
            return str(place)
    raise FileNotFoundError("there is no libnvrtc on this machine")


class Daemon:
    """Started on construction; `env` is added to the environment, and
    `fill_cache` is called with the cache's folder before the start. `kilnd`:
    another than the bundle's. `nvrtc`: its folder, nvrtc_folder() unless given;
    "" where kilnd is to look for it."""

    def __init__(self, env=None, workers=None, fill_cache=None, kilnd=None,
                 nvrtc=None):
        self.folder = tempfile.TemporaryDirectory(prefix="kiln-")
        folder = pathlib.Path(self.folder.name)
        self.socket = str(folder / "kilnd.sock")
        self.cache = folder / "cache"
        self.log = folder / "kilnd.log"
        if fill_cache is not None:
            self.cache.mkdir(mode=0o700)
            fill_cache(self.cache)
        workers = workers or min(16, os.cpu_count())
        command = [str(kilnd or BUNDLE / "bin" / "kilnd"), "--socket",
                   self.socket, "--cache-dir", str(self.cache), "--workers",
                   str(workers), "--log-file", str(self.log)]
        nvrtc = nvrtc_folder() if nvrtc is None else nvrtc
        command += ["--nvrtc", nvrtc] if nvrtc else []
        with open(folder / "output", "wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})})
        self._wait(folder / "output")

    def _wait(self, output):
        from kiln import daemon

        give_up = time.monotonic() + 20
        while not daemon.answers(self.socket):
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError("kilnd does not start: "
                                   f"{output.read_text()}{self.log_tail()}")
            time.sleep(0.02)

    def connect(self):
        import kiln

        return kiln.connect(self.socket, auto_start=False)

    def log_tail(self, size=3000):
        return self.log.read_text()[-size:] if self.log.exists() else ""

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.folder.cleanup()


@contextlib.contextmanager
def running(**options):
    daemon = Daemon(**options)
    try:
        yield daemon
    finally:
        daemon.stop()
