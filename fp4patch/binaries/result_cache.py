"""Keeps what a file was found to hold, by the file's hash: looking again takes as long as hashing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fp4patch.binaries.report import BinaryFile, RunTimeCompiler
from fp4patch.core.store import Store, key

SCAN = 6
"""Part of every key. Raise it with any change of what is looked for: older results are then not found."""


@dataclass(frozen=True)
class Known:
    """Result of one file: the number of files searched, and those with device code."""

    searched: int
    files: tuple[BinaryFile, ...]
    compilers: tuple[RunTimeCompiler, ...] = ()


_KNOWN = TypeAdapter(Known)


def cached_result(folder: Path, name: str) -> Known | None:
    """Return the stored result; None if there is none, or it is damaged."""
    try:
        return _KNOWN.validate_python(Store(folder).get(name))
    except ValidationError:
        return None


def keep_result(folder: Path, name: str, known: Known) -> None:
    """Keep a result."""
    Store(folder).put(name, _KNOWN.dump_python(known, mode="json"))


def name_of(sha256: str, gpus: Sequence[str]) -> str:
    """Return one name for a file's content and the question."""
    return key(str(SCAN), sha256, *gpus)


def placed(name: str, place: str) -> str:
    """Return the name of what is called ``name`` inside the archive, directory or file at ``place``."""
    return f"{place}!{name}" if name and place else name or place
