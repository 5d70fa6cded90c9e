"""Keeps what a file was found to hold, by the file's hash: looking again takes as long as hashing."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from fp4patch.inspect.code import BinaryFile, RunTimeCompiler

if TYPE_CHECKING:
    from collections.abc import Sequence

SCAN = 4
"""Part of every key. Raise it with any change of what is looked for: older results are then not found."""


@dataclass(frozen=True)
class Known:
    """Result of one file: the number of files searched, and those with device code."""

    searched: int
    files: tuple[BinaryFile, ...]
    compilers: tuple[RunTimeCompiler, ...] = ()


_STORED = TypeAdapter(Known)


def key(sha256: str, gpus: Sequence[str]) -> str:
    """Return one name for a file's content and the question."""
    return hashlib.sha256(f"{SCAN} {sha256} {' '.join(gpus)}".encode()).hexdigest()


def find(folder: Path, name: str) -> Known | None:
    """Return the stored result; None if there is none, or it is damaged."""
    try:
        return _STORED.validate_json((folder / f"{name}.json").read_bytes())
    except (OSError, ValidationError):
        return None


def store(folder: Path, name: str, known: Known) -> None:
    """Keep it, atomically; a directory that cannot be written only costs time."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_STORED.dump_json(known))
            Path(temporary).replace(folder / f"{name}.json")
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise


def placed(name: str, place: str) -> str:
    """Return the name of what is called ``name`` inside the archive, directory or file at ``place``."""
    return f"{place}!{name}" if name and place else name or place
