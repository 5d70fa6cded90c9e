"""Parts of a released FlashInfer, as pip installs it; all of the newest is a third of a gigabyte."""

import zipfile
from collections.abc import Callable
from pathlib import Path

from fp4patch.catalog.manifest import load
from fp4patch.core import progress
from fp4patch.sources.index import download


def unpack(version: str, site: Path, wanted: Callable[[str], bool]) -> Path:
    """Unpack the selected files of the pinned wheel, and return the package's directory in ``site``."""
    archive = load().target("flashinfer").archive(version)
    assert archive
    with zipfile.ZipFile(download(archive, progress.silent)) as wheel:
        wheel.extractall(site, [name for name in wheel.namelist() if wanted(name)])
    return site / "flashinfer"


def is_python(name: str) -> bool:
    """Return whether a file of the wheel is the package's own Python, which decides the build targets."""
    return name.startswith("flashinfer/") and name.endswith(".py") and not name.startswith("flashinfer/data/")
