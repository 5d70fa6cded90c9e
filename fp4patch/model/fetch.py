"""What ``fp4patch fetch`` put where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fetched:
    """Where a tree now is and where it came from."""

    directory: Path
    target: str
    version: str
    source: str
    """``flashinfer_python-0.6.0-py3-none-any.whl`` or the git URL with its tag."""
    sha256: str
    """Of the archive; empty for git."""
    holds: str = ""
