"""Result of ``fp4patch fetch``, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fp4patch.core.document import Report


@dataclass(frozen=True)
class Fetched(Report):
    """A fetched tree: its directory and its source."""

    directory: Path
    """Directory of the tree."""
    target: str
    version: str
    source: str
    """Origin: ``flashinfer_python-0.6.0-py3-none-any.whl`` or the git URL with its tag."""
    sha256: str
    """Pinned SHA-256 of the archive; empty for git."""
    holds: str = ""
    """Exact contents, if they are not the tagged tree itself."""
