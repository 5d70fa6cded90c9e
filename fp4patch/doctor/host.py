"""Places that doctor examines: environment, package directories and the machine's own files, as one value."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from fp4patch.core import process
from fp4patch.core.errors import UsageError

_ASK = "import json, os, sys; print(json.dumps([p for p in sys.path if p and os.path.isdir(p)]))"


@dataclass(frozen=True)
class Host:
    """A machine as doctor sees it."""

    environ: Mapping[str, str]
    site_packages: tuple[Path, ...]
    """Directories that Python imports from."""
    root: Path
    """Directory of ``usr/local/cuda*``, ``proc`` and ``sys``."""
    libcuda: str = "libcuda.so.1"
    python: str = sys.executable
    """The interpreter whose packages are looked at."""
    own: tuple[Path, ...] = ()
    """Directories from which fp4patch itself imports, if they are others."""

    @classmethod
    def here(cls, python: str = "") -> Host:
        """Return this machine with the packages of a Python: the one that is named, VIRTUAL_ENV's, or this one.

        ``python`` is a program, or a virtual environment. Raises UsageError where it does not run.
        """
        place = Path(python or os.environ.get("VIRTUAL_ENV") or sys.executable)
        place = place.absolute() if place.exists() else place  # it runs in another directory; a bare name is on PATH
        program = place / "bin/python" if place.is_dir() else place
        try:
            folders = json.loads(output_of([str(program), "-c", _ASK], os.environ))
        except ValueError as error:
            raise UsageError(
                f"{program} does not run as a Python",
                help="name a program, or the directory of a virtual environment: fp4patch doctor .venv",
            ) from error
        own = tuple(Path(entry) for entry in sys.path if entry and Path(entry).is_dir())
        return cls(os.environ, tuple(map(Path, folders)), Path("/"), python=str(program), own=own)

    def distribution(self, *names: str) -> Distribution | None:
        """Return the first of some distributions that is installed, by its metadata; nothing is imported."""
        folders = [str(folder) for folder in self.site_packages]
        return next((found for name in names for found in distributions(name=name, path=folders)), None)

    def package(self, name: str) -> Path | None:
        """Return the directory of an importable package."""
        return next((folder / name for folder in self.site_packages if (folder / name).is_dir()), None)


def output_of(command: list[str], environ: Mapping[str, str], seconds: float = 20) -> str:
    """Return what a program prints; nothing where it does not run, fails, or does not end in time."""
    try:
        done = process.run(command, limit=seconds, environ=environ, folder=Path("/"))
    except OSError:
        return ""
    return "" if done.status else done.out.strip()
