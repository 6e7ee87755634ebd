"""Finds the user's daemon, and starts one if there is none."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess
import time

from kiln.errors import KilnError

_START_TIMEOUT_S = 10.0


def default_socket() -> str:
    """$KILN_SOCKET, else $XDG_RUNTIME_DIR/kiln/kilnd.sock, else
    /tmp/kiln-<uid>/kilnd.sock."""
    given = os.environ.get("KILN_SOCKET")
    if given:
        return given
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = f"{runtime}/kiln" if runtime else f"/tmp/kiln-{os.geteuid()}"
    return f"{folder}/kilnd.sock"


def answers(path: str) -> bool:
    """Whether somebody listens on the Unix socket `path`."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def start(path: str, kilnd: str | None = None) -> None:
    """Starts a private daemon on `path` that ends after ten idle minutes."""
    program = kilnd or shutil.which("kilnd")
    if program is None:
        raise KilnError("NOT_FOUND", "There is no kilnd on PATH.")
    log = _log_file()
    with open(log, "ab") as output:
        process = subprocess.Popen(
            [program, "--socket", path, "--idle-exit", "10m"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True)
    give_up = time.monotonic() + _START_TIMEOUT_S
    while not answers(path):
        # One that lost the race for the socket exits; the winner answers soon.
        if time.monotonic() > give_up:
            state = process.poll()
            raise KilnError("UNAVAILABLE", f"{program} does not answer on "
                            f"{path} (status {state}); see {log}.")
        time.sleep(0.02)


def _log_file() -> pathlib.Path:
    state = os.environ.get("XDG_STATE_HOME")
    folder = (pathlib.Path(state) if state
              else pathlib.Path.home() / ".local" / "state") / "kiln"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "kilnd.log"
