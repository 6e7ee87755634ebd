"""Whose a socket is: a daemon serves its own user alone."""

from __future__ import annotations

import os
import pathlib
import pwd
import socket
import stat
import struct

from kiln.errors import KilnError

_UCRED = struct.Struct("=iII")  # pid, uid, gid: unix(7)


def refuses(path: str) -> KilnError:
    """For a socket at which connect(2) says EACCES or EPERM: with the file
    that refuses, its mode and its owner."""
    file = pathlib.Path(path).absolute()
    while True:
        try:
            info = file.stat()
            break
        except OSError:  # it lies in a folder that refuses
            file = file.parent
    return _refused(path, _file_text(file, info), info.st_uid)


def check_listener(connected: socket.socket, path: str) -> None:
    """Raises KilnError PERMISSION_DENIED if a process of another user listens
    on `path`, to which `connected` is connected."""
    _, uid, _ = _UCRED.unpack(connected.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    if uid != os.geteuid():
        raise _refused(path, f"its daemon belongs to {_user_text(uid)}", uid)


def check_folder(path: str) -> None:
    """Raises KilnError PERMISSION_DENIED if the folder of the socket `path` is
    there and another user's, so that no kilnd would serve in it."""
    folder = pathlib.Path(path).absolute().parent
    try:
        info = folder.lstat()
    except OSError:
        return
    if info.st_uid != os.geteuid():
        raise _refused(path, f"its folder {_file_text(folder, info)}",
                       info.st_uid)


def _refused(path: str, reason: str, owner: int) -> KilnError:
    advice = ("change its mode (chmod), or choose another socket"
              if owner == os.geteuid() else
              "each user has a daemon of their own: choose another socket")
    return KilnError(
        "PERMISSION_DENIED", f"The socket {path} cannot be used by "
        f"{_user_text(os.geteuid())}: {reason}; {advice} "
        "(connect(socket=...), KILN_SOCKET)")


def _file_text(file: pathlib.Path, info: os.stat_result) -> str:
    return (f"{file} (mode {stat.S_IMODE(info.st_mode):04o}) belongs to "
            f"{_user_text(info.st_uid)}")


def _user_text(uid: int) -> str:
    """"alice (uid 1000)", or "uid 1000" if that has no name."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
