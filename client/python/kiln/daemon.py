"""Finds the user's daemon, and starts one if there is none."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess
import time
from typing import BinaryIO

from kiln import socket_owner
from kiln.errors import KilnError

_START_TIMEOUT_S = 10.0
# A daemon that lives lets in who waits at once; this only bounds a dead one.
_CONNECT_TIMEOUT_S = 10.0
_MAX_PATH_BYTES = 107  # unix(7)
_PAUSE_S = 0.02  # between looks at a socket
# A daemon that lost the race for the lock exits at once; the winner needs
# this long at most from lock to socket.
_WINNER_GRACE_S = 2.0
# Enough for the sentence that says why a daemon does not start.
_LOG_TAIL_BYTES = 2048


def default_socket() -> str:
    """$KILN_SOCKET, else $XDG_RUNTIME_DIR/kiln/kilnd.sock, else
    /tmp/kiln-<uid>/kilnd.sock."""
    given = os.environ.get("KILN_SOCKET")
    if given:
        return given
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = f"{runtime}/kiln" if runtime else f"/tmp/kiln-{os.geteuid()}"
    return f"{folder}/kilnd.sock"


def refusal(path: str) -> str | None:
    """Why nobody accepts connections on the Unix socket `path`; None if a
    daemon does. Raises KilnError INVALID_ARGUMENT: the path is longer than
    the kernel allows; DEADLINE_EXCEEDED: the daemon's queue stays full;
    PERMISSION_DENIED: another user's, or not accessible."""
    size = len(os.fsencode(path))
    if size > _MAX_PATH_BYTES:
        raise KilnError("INVALID_ARGUMENT", f'The socket path "{path}" cannot '
                        f"be used (got {size} bytes, allowed: 1 to "
                        f"{_MAX_PATH_BYTES})")
    give_up = time.monotonic() + _CONNECT_TIMEOUT_S
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(path)
                socket_owner.check_listener(probe, path)
                return None
            except BlockingIOError:  # others wait to be let in
                pass
            except PermissionError:
                raise socket_owner.refuses(path) from None
            except OSError as error:
                return error.strerror or str(error)
        if time.monotonic() > give_up:
            raise KilnError(
                "DEADLINE_EXCEEDED", f"kilnd on {path} does not accept "
                "connections: its queue stays full (waited "
                f"{_CONNECT_TIMEOUT_S:g} s); look at the daemon's log, one "
                "that hangs must be ended (kill)")
        time.sleep(_PAUSE_S)


def answers(path: str) -> bool:
    """Whether a daemon accepts connections on `path`. Raises as refusal."""
    return refusal(path) is None


def start(path: str, kilnd: str | None = None) -> None:
    """Starts a private daemon on `path` that ends after ten idle minutes.
    Raises KilnError UNAVAILABLE: no kilnd; or, with the end of the daemon's
    log, if none answers in time or the one started exits; PERMISSION_DENIED,
    with nothing started: the folder of `path` is another user's."""
    socket_owner.check_folder(path)
    program = kilnd or shutil.which("kilnd")
    if program is None:
        raise KilnError("UNAVAILABLE", "There is no kilnd on PATH; start one "
                        "yourself (kilnd), or install Kiln")
    log_file = _log_file()
    with _open_log(log_file) as log:
        log_start = log.tell()
        process = _spawn(program, path, log)
    if _wait_until_answered(path, process):
        return
    fate = (f"is not ready after {_START_TIMEOUT_S:g} s"
            if process.poll() is None else f"exits ({process.returncode})")
    raise KilnError("UNAVAILABLE", f"{program} {fate} and nobody answers on "
                    f"{path}. End of its log, {log_file}:\n"
                    f"{_log_tail(log_file, log_start)}")


def _spawn(program: str, path: str, log: BinaryIO) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [program, "--socket", path, "--idle-exit", "10m"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True)
    except OSError as error:
        raise KilnError("UNAVAILABLE", f"{program} cannot be started: "
                        f"{error.strerror}") from None


def _wait_until_answered(path: str, process: subprocess.Popen[bytes]) -> bool:
    """False once the time to start is over."""
    give_up = time.monotonic() + _START_TIMEOUT_S
    has_exited = False
    while not answers(path):
        if time.monotonic() > give_up:
            return False
        if not has_exited and process.poll() is not None:
            has_exited = True
            give_up = min(give_up, time.monotonic() + _WINNER_GRACE_S)
        time.sleep(_PAUSE_S)
    return True


def _log_file() -> pathlib.Path:
    state = os.environ.get("XDG_STATE_HOME")
    folder = (pathlib.Path(state) if state
              else pathlib.Path.home() / ".local" / "state") / "kiln"
    return folder / "kilnd.log"


def _open_log(path: pathlib.Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "ab")
    except OSError as error:
        raise KilnError("UNAVAILABLE", f"The daemon's log {path} cannot be "
                        f"opened: {error.strerror}") from None


def _log_tail(path: pathlib.Path, start: int) -> str:
    """The end of what is behind byte `start`."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(min(start, size), size - _LOG_TAIL_BYTES))
            tail = log.read(_LOG_TAIL_BYTES)
    except OSError:
        return "(unreadable)"
    return tail.decode(errors="replace").strip() or "(empty)"
