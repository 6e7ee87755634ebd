"""The bundle's C++ tests, on a private daemon."""

import os
import re
import subprocess

import gpu_daemon

PROGRAM = gpu_daemon.BUNDLE / "bin" / "kiln_gpu_test"


def run(daemon, scratch, timeout_s):
    """{"ok", "note"}. A run that skips, as without a GPU, is not ok."""
    log = scratch / "kiln_gpu_test.log"
    with open(log, "wb") as output:
        try:
            status = subprocess.run(
                [str(PROGRAM)], stdout=output, stderr=output,
                timeout=timeout_s,
                env={**os.environ, "KILN_SOCKET": daemon.socket}).returncode
        except subprocess.TimeoutExpired:
            status = "not finished in time"
    text = log.read_text(errors="replace")
    passed = re.search(r"\[  PASSED  \] (\d+) tests", text)
    ok = status == 0 and passed is not None and passed.group(1) != "0"
    return {"ok": ok, "note": f"{passed.group(1)} passed" if ok else
            f"status {status}: {text[-1200:]}"}
