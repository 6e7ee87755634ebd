"""The digest of everything that can alter generated code, as
jit/compile/compiler_digest.cmake computes it and kilnd reports it."""

import hashlib

_FOLDERS = ("kernel_sources", "jit/plan", "jit/compile")
_EXTENSIONS = ("h", "cc", "cu", "cuh", "cmake")


def of_tree(root):
    """64 hexadecimal digits for the sources below `root`, a pathlib.Path."""
    sources = sorted(
        path.relative_to(root).as_posix() for folder in _FOLDERS
        for extension in _EXTENSIONS
        for path in (root / folder).glob(f"*.{extension}"))
    listing = "".join(f"{_sha256((root / source).read_bytes())}  {source}\n"
                      for source in sources)
    return _sha256(listing.encode())


def _sha256(data):
    return hashlib.sha256(data).hexdigest()
