"""Result of ``fp4patch fetch``, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fetched:
    """A fetched tree: its directory and its source."""

    directory: Path
    target: str
    version: str
    source: str
    """Origin: ``flashinfer_python-0.6.0-py3-none-any.whl`` or the git URL with its tag."""
    sha256: str
    """SHA-256 of the archive; empty for git."""
    holds: str = ""
