"""The digest of everything that can alter generated code, as
jit/compile/compiler_digest.cmake computes it and kilnd reports it."""

import hashlib
import re

_FOLDERS = ("kernel_sources", "jit/plan", "jit/compile")
_EXTENSIONS = ("h", "cc", "cu", "cuh", "cmake")


def of_tree(root):
    """64 hexadecimal digits for the sources below `root`, a pathlib.Path."""
    sources = sorted(
        path.relative_to(root).as_posix() for folder in _FOLDERS
        for extension in _EXTENSIONS
        for path in (root / folder).glob(f"*.{extension}"))
    listing = "".join(f"{_sha256(code_of((root / source).read_bytes()))}"
                      f"  {source}\n" for source in sources)
    return _sha256(listing.encode())


def code_of(text):
    """Without lines that are comments, and with single spaces for all others:
    what of a file can alter generated code."""
    text = re.sub(rb"\n[ \t]*//[^\n]*", b"", b"\n" + text)
    return re.sub(rb"[ \t\r\n]+", b" ", text)


def _sha256(data):
    return hashlib.sha256(data).hexdigest()
