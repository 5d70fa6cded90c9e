"""Places that doctor examines: environment, package directories and the machine's own files, as one value."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from fp4patch.core import process
from fp4patch.core.errors import UsageError

_ASK = (
    "import json, os, platform, sys;"
    " print(json.dumps([platform.python_version(), [p for p in sys.path if p and os.path.isdir(p)]]))"
)


@dataclass(frozen=True)
class Host:
    """A machine as doctor sees it."""

    environ: Mapping[str, str]
    site_packages: tuple[Path, ...]
    """Directories that Python imports from."""
    root: Path
    """Directory of ``usr/local/cuda*``, ``proc`` and ``sys``."""
    home: Path
    libcuda: str = "libcuda.so.1"
    python: str = sys.executable
    """The interpreter whose packages are looked at."""
    version: str = platform.python_version()
    """Version of that interpreter."""
    own: tuple[Path, ...] = ()
    """Directories from which fp4patch itself imports, if that is another Python."""

    @classmethod
    def here(cls, python: str = "") -> Host:
        """Return this machine with the packages of a Python: the one that is named, VIRTUAL_ENV's, or this one.

        ``python`` is a program, or a virtual environment. Raises UsageError where it does not run.
        """
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - not every user has one
        active = os.environ.get("VIRTUAL_ENV", "")
        if not python and active and Path(active).resolve() != Path(sys.prefix).resolve():
            python = active
        own = tuple(Path(entry) for entry in sys.path if entry and Path(entry).is_dir())
        if not python:
            return cls(os.environ, own, Path("/"), home)
        place = Path(python)
        place = place.absolute() if place.exists() else place  # it runs in another directory; a bare name is on PATH
        program = place / "bin/python" if place.is_dir() else place
        status, output = said([str(program), "-c", _ASK], os.environ, cwd=Path("/"))
        try:
            version, folders = json.loads(output) if status == 0 else ("", [])
        except ValueError:
            status = 1
        if status:
            raise UsageError(
                f"{program} does not run as a Python: {output.splitlines()[-1] if output else 'no output'}",
                help="name a program, or the directory of a virtual environment: fp4patch doctor .venv",
            )
        return cls(
            os.environ, tuple(map(Path, folders)), Path("/"), home, python=str(program), version=version, own=own
        )

    @property
    def path(self) -> str:
        """The directories of programs."""
        return self.environ.get("PATH", os.defpath)

    def distribution(self, name: str) -> Distribution | None:
        """Return an installed distribution by its metadata; nothing is imported."""
        folders = [str(folder) for folder in self.site_packages]
        return next(iter(distributions(name=name, path=folders)), None)

    def package(self, name: str) -> Path | None:
        """Return the directory of an importable package."""
        return next((folder / name for folder in self.site_packages if (folder / name).is_dir()), None)


def said(
    command: list[str], environ: Mapping[str, str], seconds: float = 20, *, cwd: Path | None = None
) -> tuple[int, str]:
    """Exit status and output of a program; 127 where it does not run, 124 where it does not end in time."""
    try:
        done = process.run(command, limit=seconds, environ=environ, folder=cwd)
    except OSError as error:
        return 124 if isinstance(error, TimeoutError) else 127, f"{command[0]} {error.strerror}"
    return done.status, done.out.strip() or done.err.strip()
