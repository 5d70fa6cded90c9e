"""Which reader reads which file, by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module

from packaging.version import Version

from fp4patch.core.lex_error import LexError
from fp4patch.doctor.readings.grammar import NoReaderError
from fp4patch.doctor.readings.reading import Read

Reader = Callable[[str, Version], Read]
"""Return what a text says, with conditions on the CUDA release evaluated for this one."""

_READERS = {
    "dockerfile": r"[\w.-]*Dockerfile[\w.-]*|Containerfile|.*\.dockerfile",
    "make": r"(?:GNU)?[Mm]akefile[\w.-]*|.*\.mk",
    "cmake": r"CMakeLists\.txt|.*\.cmake",
    "presets": r"CMake(?:User)?Presets\.json",
    "shell": r".*\.(?:sh|bash|env)|\.env",
    "pkgbuild": r"PKGBUILD",
    "yaml": r".*\.ya?ml",
    "nix": r".*\.nix",
    "toml": r"pyproject\.toml|build\.toml",
    "bazelrc": r".*\.bazelrc",
    "just": r"[Jj]ustfile|.*\.just",
    "xmake": r"xmake\.lua",
    "python": r"setup\.py|package\.py|.*\.eb|.*(?:build|compile|nvcc|arch|jit|cuda|extension)\w*\.py"
    r"|BUILD(?:\.bazel)?|.*\.bzl",
}
_FILES = re.compile("|".join(f"(?P<{kind}>{names})" for kind, names in _READERS.items()))
# Example: gencode
_LOOKS = re.compile(
    r"ARCH|cuda[_-]?arch|-arch|arch[=_]|gencode|apabilit|CAPABILIT|gpuTargets|sm_1|nvcc|NVCC|-D\w|definitions|1[0-2]\.\d[af]"
)
"""What a file has that says something about targets or macros."""


def kind_of(name: str) -> str:
    """Return the language of a file of this name; empty if none of the readers reads it."""
    found = _FILES.fullmatch(name.rpartition("/")[2])
    return found.lastgroup or "" if found else ""


def read(path: str, text: str, cuda: Version) -> Read | str | None:
    """Return what a build file says about targets; why it is not read; or None if it has nothing to say of them."""
    return read_all(path, text, cuda) if _LOOKS.search(text) else None


def read_all(path: str, text: str, cuda: Version) -> Read | str | None:
    """Return what a build file says; why it is not read; or None if there is no reader for a file of this name."""
    kind = kind_of(path)
    if not kind:
        return None
    module = import_module(f"fp4patch.doctor.readings.{_MODULES.get(kind, kind)}")
    reader: Reader = getattr(module, f"read_{kind}")
    try:
        return reader(text, cuda)
    except NoReaderError as error:
        return str(error)
    except (LexError, SyntaxError, ValueError, RecursionError) as error:
        return f"it is not read: {error}"


_MODULES = {"pkgbuild": "shell", "presets": "data", "toml": "data", "bazelrc": "data", "just": "data", "xmake": "data"}
