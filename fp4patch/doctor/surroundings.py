"""Where doctor looks: one value for environment, folders of packages and the machine's own files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path


@dataclass(frozen=True)
class Surroundings:
    """A machine as doctor sees it."""

    environ: Mapping[str, str]
    site_packages: tuple[Path, ...]
    """Folders that Python imports from."""
    root: Path
    """Where ``usr/local/cuda*``, ``proc`` and ``sys`` lie."""
    home: Path
    libcuda: str = "libcuda.so.1"

    @classmethod
    def here(cls) -> Surroundings:
        """This machine and this Python."""
        folders = tuple(Path(entry) for entry in sys.path if entry and Path(entry).is_dir())
        return cls(os.environ, folders, Path("/"), Path(os.path.expanduser("~")))  # noqa: PTH111 - not every user has one

    @property
    def path(self) -> str:
        """The folders of programs."""
        return self.environ.get("PATH", os.defpath)

    def distribution(self, name: str) -> Distribution | None:
        """An installed distribution by its metadata; nothing is imported."""
        folders = [str(folder) for folder in self.site_packages]
        return next(iter(distributions(name=name, path=folders)), None)

    def package(self, name: str) -> Path | None:
        """The folder of an importable package."""
        return next((folder / name for folder in self.site_packages if (folder / name).is_dir()), None)


def said(command: list[str], environ: Mapping[str, str], seconds: float = 20) -> tuple[int, str]:
    """Exit status and output of a program; 127 where it does not run, 124 where it does not end in time."""
    try:
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]} did not answer in {seconds:g} s"
    except OSError as error:
        return 127, str(error)
    return run.returncode, run.stdout.strip() or run.stderr.strip()
