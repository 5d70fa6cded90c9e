"""Files that git tracks, read from its index alone: git in an untrusted tree would run programs that its config names.

The format: https://git-scm.com/docs/index-format, versions 2 to 4.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fp4patch.tree import disk


def tracked(root: Path) -> dict[str, str]:
    """Return what git tracks in and below a directory: path, relative to it, and the object's name in hexadecimal.

    Empty where no checkout is around the directory, or where its index cannot be read. Of a split index, names are
    right, and an object may be one that the file had when the index was split.
    """
    for top in (root, *root.parents):
        if folder := _git_directory(top):
            prefix = "".join(f"{part}/" for part in root.relative_to(top).parts)
            size = 32 if re.search(rb"(?i)objectformat\s*=\s*sha256", _config(folder)) else 20
            shared = [path.name for path in _listed(folder) if path.name.startswith("sharedindex.")]
            names: dict[str, str] = {}
            for name in (*shared, "index"):  # in a split index, an entry without a name is one of the shared part
                with suppress(IndexError, ValueError, struct.error):
                    names |= dict(_entries(_read(folder / name), size))
            return {path.removeprefix(prefix): oid for path, oid in names.items() if path.startswith(prefix) and path}
    return {}


def _git_directory(top: Path) -> Path | None:
    """Return the directory that holds the index of a checkout; None if its top is not here."""
    git = top / ".git"
    with suppress(OSError, ValueError):
        if git.is_dir():
            return git
        link = _read(git).decode(errors="surrogateescape")  # of a worktree or a submodule
        if link.startswith("gitdir:"):
            return top / link.removeprefix("gitdir:").strip()
    return None


def _config(folder: Path) -> bytes:
    common = _read(folder / "commondir").decode(errors="surrogateescape").strip()
    return _read(folder / common / "config")


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []


def _read(path: Path) -> bytes:
    """Return the bytes of a regular file; none if there is no such file, or it cannot be read."""
    with suppress(OSError, ValueError), disk.Directory.at(path.parent) as directory:
        found = directory.read(path.name)
        return found[0] if found else b""
    return b""


def _entries(data: bytes, size: int) -> Iterator[tuple[str, str]]:
    """Yield each entry's path and object; ``size`` is the bytes of an object's name."""
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        return
    at, name = 12, b""
    for _ in range(count):
        start = at
        oid = data[start + 40 : start + 40 + size].hex()
        (flags,) = struct.unpack_from(">H", data, start + 40 + size)
        at += 42 + size + (2 if flags & 0x4000 else 0)
        if version == 4:  # how many bytes of the name before are not in this one, and then the rest of it
            drop = data[at] & 127
            while data[at] & 128:
                at += 1
                drop = ((drop + 1) << 7) | (data[at] & 127)
            end = data.index(0, at + 1)
            name = name[: len(name) - drop] + data[at + 1 : end]
            at = end + 1
        else:
            end = data.index(0, at)
            name = data[at:end]
            at = start + ((end - start) // 8 + 1) * 8
        yield name.decode(errors="surrogateescape"), oid
