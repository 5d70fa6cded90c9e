"""Keeps what a file was found to hold, by the file's hash: looking again takes as long as hashing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fp4patch.binaries.report import BinaryFile, RunTimeCompiler
from fp4patch.core.store import Store, key, source_hash


@dataclass(frozen=True)
class ScannedFile:
    """Result of one file: the number of files searched, and those with device code."""

    searched: int
    sources: int
    files: tuple[BinaryFile, ...]
    compilers: tuple[RunTimeCompiler, ...] = ()


_RESULT = TypeAdapter(ScannedFile)


def key_of(sha256: str, question: Sequence[str]) -> str:
    """Return one key for a file's content, the question, and the code that looks into it."""
    return key(source_hash("fp4patch.binaries", "fp4patch.core"), sha256, *question)


def cached_result(folder: Path, key: str) -> ScannedFile | None:
    """Return the stored result; None if there is none, or it is damaged."""
    try:
        return _RESULT.validate_python(Store(folder).get(key))
    except ValidationError:
        return None


def keep_result(folder: Path, key: str, result: ScannedFile) -> None:
    """Keep a result."""
    Store(folder).put(key, _RESULT.dump_python(result, mode="json"))
